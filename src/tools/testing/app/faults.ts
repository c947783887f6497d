import { setTimeout as sleep } from "node:timers/promises";
import type { ParameterReader } from "../../../app/runtime/adapters.ts";
import type { Database } from "../../../base/types/database.ts";
import { leaseMs, skewMs } from "../../../parts/once/claim.ts";

/** Time after which the claims of a crashed process can be taken over. */
export const pastLeaseMs = leaseMs + skewMs + 1_000;

/** Members of the error of a call whose answer is lost. */
export const lostAnswer = Object.freeze({ name: "TimeoutError", code: "ECONNRESET" });

/**
 * Error that every call in flight throws when a test crashes its app with
 * `app.faults.before(…).crash()`.
 */
export class CrashError extends Error {
  override readonly name = "CrashError";

  constructor() {
    super("the process crashed (armed by the test)");
  }
}

/** Faults that can be armed for a call. */
export interface Fault {
  /**
   * Crashes the process. Everything in flight fails with a {@link CrashError}, and keelson's
   * in-memory state is lost. Stored data remains, and the next request reaches a new process.
   */
  crash(): void;
  /** Fails the call with an error of this name, as the SDK reports it after its retries. */
  fail(name: string): void;
  /** Delays the call by `ms` milliseconds. */
  delay(ms: number): void;
  /** Sends the call but loses its response. */
  loseAnswer(): void;
}

/** Arms faults. Several faults can be armed at the same time; each fires once. */
export interface Faults {
  /** Arms a fault before the `n`-th call of `operation` from now, starting at 1. */
  before(operation: string, n: number): Fault;
  /** Arms a fault after the `n`-th call of `operation` from now, starting at 1. */
  after(operation: string, n: number): Fault;
}

interface Armed {
  readonly moment: "before" | "after";
  readonly operation: string;
  readonly call: number; // since the app started
  readonly act: () => Promise<void>;
}

export type CallWatch = ReturnType<typeof createCallWatch>;

export type Client = Pick<Database, "middlewareStack"> | Pick<ParameterReader, "middlewareStack">;

/** Call to AWS that is about to be sent. */
export interface GatedCall {
  readonly operation: string;
  /** As the SDK serialises it. */
  readonly input: object;
}

/** Decides when each attempt of a call is sent, and its outcome. */
export type Gate = <Output>(call: GatedCall, send: () => Promise<Output>) => Promise<Output>;

/** Passes each attempt of the client's calls through `gate`: after the SDK's own retries. */
export function gateCalls({ middlewareStack }: Client, gate: Gate): void {
  // Safe cast: the middleware passes commands of either client through unchanged.
  const stack = middlewareStack as Database["middlewareStack"];
  stack.add(
    (next, context) => (parameters) =>
      gate({ operation: operationOf(context), input: parameters.input }, () => next(parameters)),
    { step: "finalizeRequest", priority: "low", name: "keelsonGateCalls" },
  );
}

export function ungateCalls({ middlewareStack }: Client): void {
  middlewareStack.remove("keelsonGateCalls");
}

export function createCallWatch(crash: () => void, gate?: Gate) {
  // Calls sent, by operation: including calls that a fault failed, without calls that keelson's
  // tenant check rejected.
  const calls: Record<string, number> = {};
  // Calls started, by operation. Used by faults, which fire before the call is known to be sent.
  const begun: Record<string, number> = {};
  const count = (operation: string) => {
    calls[operation] = (calls[operation] ?? 0) + 1;
  };
  const sequence: string[] = [];
  const armed: Armed[] = [];
  const fire = async (moment: Armed["moment"], operation: string, call: number) => {
    const due = armed.filter(
      (fault) => fault.moment === moment && fault.operation === operation && fault.call === call,
    );
    for (const fault of due) {
      armed.splice(armed.indexOf(fault), 1);
      await fault.act();
    }
  };
  /** All calls fail once `life` aborts. */
  const watch = (client: Client, life: AbortSignal): void => {
    if (gate !== undefined) gateCalls(client, gate);
    // Safe cast: the middlewares pass commands of either client through unchanged.
    const stack = client.middlewareStack as Database["middlewareStack"];
    // Counts after keelson's tenant check and before the SDK's retries.
    stack.add(
      (next, context) => (parameters) => {
        count(operationOf(context));
        return next(parameters);
      },
      { step: "build", name: "keelsonCountCalls" },
    );
    stack.add(
      (next, context) => async (parameters) => {
        life.throwIfAborted();
        const operation = operationOf(context);
        sequence.push(operation);
        const call = (begun[operation] ?? 0) + 1;
        begun[operation] = call;
        await fire("before", operation, call).catch((error: unknown) => {
          count(operation); // the application sees this call as sent
          throw error;
        });
        life.throwIfAborted(); // the process may have crashed in the meantime
        const output = await next(parameters);
        life.throwIfAborted();
        await fire("after", operation, call);
        return output;
      },
      { step: "initialize", priority: "high", name: "keelsonWatchCalls" },
    );
  };
  const arm =
    (moment: Armed["moment"]) =>
    (operation: string, n: number): Fault => {
      if (!Number.isSafeInteger(n) || n < 1)
        throw new RangeError(`faults.${moment}: ${n} is not a call number; the first is 1`);
      const add = (act: Armed["act"]) =>
        void armed.push({ moment, operation, call: (begun[operation] ?? 0) + n, act });
      const refuse = (error: Error, facts: object) =>
        add(() => Promise.reject(Object.assign(error, facts)));
      return {
        crash: () =>
          add(async () => {
            crash();
            throw new CrashError();
          }),
        fail: (name) => refuse(new Error(`${name} (armed by the test)`), { name }),
        delay: (ms) => add(() => sleep(ms)),
        loseAnswer: () => {
          if (moment === "before")
            throw new TypeError(
              "faults.before(...).loseAnswer(): an answer is lost after the call; use faults.after",
            );
          refuse(new Error("socket hang up (armed by the test)"), lostAnswer);
        },
      };
    };
  const faults: Faults = { before: arm("before"), after: arm("after") };
  return { calls, sequence, watch, faults };
}

function operationOf(context: Readonly<Record<string, unknown>>) {
  return String(context["commandName"]).replace(/Command$/, "");
}
