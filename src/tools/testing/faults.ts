import type { ParameterReader } from "../../app/runtime/adapters.ts";
import type { Database } from "../../base/types/database.ts";
import { CrashError } from "./crash-error.ts";

/** The fault of an armed call. */
export interface Fault {
  /**
   * The process dies: everything in flight fails with a {@link CrashError}, and what keelson held in memory is forgotten.
   * Stored data stays, and the next request meets a new process.
   */
  crash(): void;
  /** The call fails with an error of this name, as the SDK reports it after its retries. */
  fail(name: string): void;
  /** The call is delayed by `ms` milliseconds. */
  delay(ms: number): void;
  /** The call is made, but its response never arrives. */
  loseAnswer(): void;
}

/** Arms faults. Several may be armed at once; each fires once. */
export interface Faults {
  /** Before the `n`-th call of `operation` from now, the first being 1. */
  before(operation: string, n: number): Fault;
  /** After the `n`-th call of `operation` from now, the first being 1. */
  after(operation: string, n: number): Fault;
}

interface Armed {
  readonly moment: "before" | "after";
  readonly operation: string;
  /** Which call of the operation, counted from the start. */
  readonly call: number;
  readonly act: () => Promise<void>;
}

/** The calls of all clients of a test. */
export interface CallWatch {
  /** The calls that were sent so far, by operation, those that a fault failed among them; none that the tenant wall refused. */
  readonly calls: Readonly<Record<string, number>>;
  readonly faults: Faults;
  /** All calls, in the order in which they began. */
  readonly sequence: readonly string[];
  /** Watches a client of the SDK from now on; once `life` is aborted no call of it gets through. */
  watch(
    client: Pick<Database, "middlewareStack"> | Pick<ParameterReader, "middlewareStack">,
    life: AbortSignal,
  ): void;
}

/** Watches the calls of clients: counts them by operation, and lets armed faults happen. `crash` ends the process. */
export function createCallWatch(crash: () => void): CallWatch {
  const calls: Record<string, number> = {};
  /** Faults count all calls: one is armed before it is known which of them will be sent. */
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
  const watch: CallWatch["watch"] = ({ middlewareStack }, life) => {
    // Safe: whatever the client, a command passes through unchanged.
    const stack = middlewareStack as Database["middlewareStack"];
    // Behind the wall, which checks what is about to be serialized, and before the SDK's retries.
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
          count(operation); // as far as the application knows, it was sent
          throw error;
        });
        life.throwIfAborted(); // it may have crashed while the call was held up, and while it was under way
        const output = await next(parameters);
        life.throwIfAborted();
        await fire("after", operation, call);
        return output;
      },
      { step: "initialize", priority: "high", name: "keelsonWatchCalls" },
    );
  };
  const arm = (moment: Armed["moment"]) => (operation: string, n: number) => {
    if (!Number.isSafeInteger(n) || n < 1)
      throw new RangeError(`faults.${moment}: ${n} is not a call number; the first is 1`);
    const add = (act: Armed["act"]) =>
      void armed.push({ moment, operation, call: (begun[operation] ?? 0) + n, act });
    return {
      crash: () =>
        add(() => {
          crash();
          return Promise.reject(new CrashError());
        }),
      fail: (name: string) =>
        add(() =>
          Promise.reject(Object.assign(new Error(`${name} (armed by the test)`), { name })),
        ),
      delay: (ms: number) => add(() => new Promise((resolve) => setTimeout(resolve, ms))),
      loseAnswer: () => {
        if (moment === "before")
          throw new TypeError(
            "faults.before(...).loseAnswer(): an answer is lost after the call; use faults.after",
          );
        add(() =>
          Promise.reject(
            Object.assign(new Error("socket hang up (armed by the test)"), {
              name: "TimeoutError",
              code: "ECONNRESET",
            }),
          ),
        );
      },
    };
  };
  return { calls, sequence, watch, faults: { before: arm("before"), after: arm("after") } };
}

function operationOf(context: Readonly<Record<string, unknown>>): string {
  return String(context["commandName"]).replace(/Command$/, "");
}
