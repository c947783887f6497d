import { ConflictError } from "../../base/errors/errors.ts";
import { isPermanent } from "../../base/errors/permanent-error.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { ScheduleDeclaration } from "../features/schedule.ts";
import type { Adapters } from "../runtime/adapters.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { type FireTimes, fireTimes } from "../schedules/fire-times.ts";
import { maxAttempts, retryOf, scheduleStep } from "../schedules/schedule-step.ts";
import type { ScheduleStore } from "../schedules/schedule-store.ts";
import { consumeOnce } from "./consume.ts";

/** A schedule in one process. */
export interface Schedule {
  /** The full name. */
  readonly name: string;
  /** Looks whether it is due, and lets it fire; one look at a time. Never throws. */
  look(options?: LookOptions): Promise<Looked>;
}

/** How a schedule is looked at. */
export interface LookOptions {
  /** When the process will be gone, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
  /** From when on a schedule is due that is seen for the first time, in milliseconds since the epoch. Default: now. */
  readonly sinceMs?: number;
}

/** What came of a look. */
export interface Looked {
  readonly kind:
    | "idle"
    /** It is due, and waits for its next attempt. */
    | "waiting"
    | "fired"
    /** Another process runs it, or has run it. */
    | "elsewhere"
    /** It failed, and is tried again; the error is logged. */
    | "failed"
    /** It failed too often. */
    | "gave-up";
  /** When to look again, in milliseconds since the epoch. */
  readonly nextMs: number;
  /** The message of the error, if it gave up. */
  readonly reason?: string;
}

/** After how long a failure is looked at again, in milliseconds. */
const failureMs = 1_000;

/** What every look works with. */
interface Parts {
  readonly runtime: Runtime;
  readonly adapters: Adapters;
  readonly store: ScheduleStore;
}

/** Makes the schedules of a server. */
export async function createSchedules(
  runtime: Runtime,
  adapters: Adapters,
): Promise<readonly Schedule[]> {
  const store = await adapters.schedules.open();
  return [...runtime.server.registry.schedules.values()].map(
    (declaration) => new OneSchedule({ runtime, adapters, store }, declaration),
  );
}

class OneSchedule implements Schedule {
  readonly name: string;
  readonly #parts: Parts;
  readonly #declaration: ScheduleDeclaration;
  readonly #times: FireTimes;
  /** Where it is noted when it fired. With other times it is another schedule: what these were before is nothing missed. */
  readonly #key: ClaimKey;

  constructor(parts: Parts, declaration: ScheduleDeclaration) {
    const { name, cron, timeZone } = declaration;
    this.name = name;
    this.#parts = parts;
    this.#declaration = declaration;
    this.#times = fireTimes(cron, timeZone);
    this.#key = {
      partition: claimKey(["schedule", name, cron, timeZone], "").partition,
      sort: "fires",
    };
  }

  async look(options: LookOptions = {}): Promise<Looked> {
    const { clock, log } = this.#parts.runtime;
    try {
      return await this.#look(options);
    } catch (error) {
      log.warn("schedule.look_failed", { handler: this.name, reason: String(error) });
      return { kind: "failed", nextMs: clock.now() + failureMs };
    }
  }

  async #look(options: LookOptions): Promise<Looked> {
    const { runtime, store } = this.#parts;
    const nowMs = runtime.clock.now();
    let record = await store.read(this.#key);
    if (record === undefined) {
      record = { lastMs: options.sinceMs ?? nowMs };
      await store.add(this.#key, record.lastMs);
    }
    const { lastMs } = record;
    const { missed } = this.#declaration;
    const step = scheduleStep(record, { nowMs, missed, lastFire: () => this.#times.last(nowMs) });
    switch (step.kind) {
      case "fire":
        return this.#fire(step.atMs, options);
      case "wait":
        return { kind: "waiting", nextMs: step.untilMs };
      case "pass":
        if (await store.pass(this.#key, lastMs, step.atMs)) this.#warnOfMissed(step.atMs);
        break;
      case "none":
    }
    return { kind: "idle", nextMs: this.#times.next(nowMs) ?? Number.POSITIVE_INFINITY };
  }

  #warnOfMissed(atMs: number): void {
    this.#parts.runtime.log.warn("schedule.missed", { handler: this.name, firesAt: text(atMs) });
  }

  /** Runs it under the claim of the time at which it fires. */
  async #fire(atMs: number, { deadlineMs }: LookOptions): Promise<Looked> {
    const { runtime, adapters, store } = this.#parts;
    const { name } = this;
    const id = derivedId("schedule", name, atMs);
    let attempts: number | undefined;
    const outcome = await consumeOnce(runtime, adapters, {
      key: claimKey(["schedule", name], text(atMs)),
      handler: name,
      cause: { causedBy: id, origRequestId: id, originator: "system" },
      id,
      logFields: { firesAt: text(atMs) },
      logPrefix: "schedule",
      kind: "schedule",
      facts: () => ({ attempt: attempts, sinceMs: atMs }),
      deadlineMs,
      run: async (ctx) => {
        attempts = await store.begin(this.#key, atMs);
        // Thrown, so that the claim does not say that it is done.
        if (attempts === undefined)
          throw new ConflictError("schedule_begun", "The schedule has fired or fires meanwhile");
        // Nobody else tells of attempts that took their process with them.
        if (attempts > maxAttempts) {
          ctx.log.error("schedule.gave_up", { attempts: maxAttempts });
          this.#countGivenUp();
        } else await this.#declaration.run(ctx, { at: new Date(atMs) });
      },
      own: () => [store.done(this.#key, atMs)],
    });
    const nowMs = runtime.clock.now();
    switch (outcome.kind) {
      case "processed":
        return { kind: "fired", nextMs: nowMs };
      case "failed":
        if (attempts === undefined) return { kind: "failed", nextMs: nowMs + failureMs };
        return this.#failed(atMs, attempts, outcome.error);
      case "skipped":
        await store.skip(this.#key, atMs); // done by a process with other times, of which this is one
        return { kind: "elsewhere", nextMs: nowMs };
      case "handed-back":
        return { kind: "elsewhere", nextMs: nowMs + Math.max(outcome.afterMs, failureMs) };
    }
  }

  async #failed(atMs: number, attempts: number, error: unknown): Promise<Looked> {
    const { runtime, store } = this.#parts;
    const nowMs = runtime.clock.now();
    const retryMs = isPermanent(error) ? undefined : retryOf(attempts, nowMs);
    if (retryMs !== undefined) {
      await store.postpone(this.#key, { atMs, attempts, retryMs });
      return { kind: "failed", nextMs: retryMs };
    }
    if (await store.giveUp(this.#key, { atMs, attempts })) {
      runtime.log.error("schedule.gave_up", { handler: this.name, firesAt: text(atMs), attempts });
      this.#countGivenUp();
    }
    return { kind: "gave-up", nextMs: nowMs, reason: String(error) };
  }

  #countGivenUp(): void {
    this.#parts.runtime.metrics?.record("keelson.dead_letters", 1, { "keelson.kind": "schedule" });
  }
}

function text(atMs: number): string {
  return new Date(atMs).toISOString();
}
