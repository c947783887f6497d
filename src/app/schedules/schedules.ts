import { ConflictError } from "../../base/errors/errors.ts";
import { isPermanent } from "../../base/errors/permanent-error.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { FireTask, TaskOutcome } from "./fire-task.ts";
import { type FireTimes, fireTimes } from "./fire-times.ts";
import type { ScheduleDeclaration } from "./schedule.ts";
import { maxAttempts, retryOf, scheduleStep } from "./schedule-step.ts";
import type { ScheduleStore } from "./schedule-store.ts";

export interface Schedule {
  readonly name: string;
  /** Runs the schedule if it is due. Never throws. */
  look(options?: LookOptions): Promise<Looked>;
}

interface LookOptions {
  /** Time at which the process ends, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
  /** Time from which a schedule without a record is due. Default: now. */
  readonly sinceMs?: number;
}

export interface Looked {
  readonly kind:
    | "idle"
    /** An earlier attempt failed, and the next is not due yet. */
    | "waiting"
    | "fired"
    /** Another process is doing this run, or has done it. */
    | "elsewhere"
    /** The run, or the check, failed and will be retried. The error is logged. */
    | "failed"
    | "gave-up";
  /** Time of the next check, in milliseconds since the epoch. */
  readonly nextMs: number;
  readonly reason?: string;
}

/** Delay of the next check after a failure, in milliseconds. */
const failureMs = 1_000;

interface ScheduleRuntime {
  readonly server: {
    readonly registry: { readonly schedules: ReadonlyMap<string, ScheduleDeclaration> };
  };
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "error">;
  readonly metrics: Pick<Metrics, "record"> | undefined;
}

/**
 * Creates the schedules of a server.
 * @param consume - runs a task under its claim, and never throws.
 */
export async function createSchedules<
  Runtime extends ScheduleRuntime,
  Adapters extends { readonly schedules: Lazy<ScheduleStore> },
>(
  runtime: Runtime,
  adapters: Adapters,
  consume: (runtime: Runtime, adapters: Adapters, task: FireTask) => Promise<TaskOutcome>,
): Promise<readonly Schedule[]> {
  const parts: Parts = {
    runtime,
    store: await adapters.schedules.open(),
    consume: (task) => consume(runtime, adapters, task),
  };
  return [...runtime.server.registry.schedules.values()].map(
    (declaration) => new OneSchedule(parts, declaration),
  );
}

interface Parts {
  readonly runtime: ScheduleRuntime;
  readonly store: ScheduleStore;
  readonly consume: (task: FireTask) => Promise<TaskOutcome>;
}

class OneSchedule implements Schedule {
  readonly name: string;
  readonly #parts: Parts;
  readonly #declaration: ScheduleDeclaration;
  readonly #times: FireTimes;
  /**
   * Key of the schedule's record. It contains `cron` and `timeZone`: if these change, a schedule
   * starts a new record, and no run of the old record counts as missed.
   */
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
        if (await store.pass(this.#key, lastMs, step.atMs))
          runtime.log.warn("schedule.missed", { handler: this.name, firesAt: text(step.atMs) });
        break;
      case "none":
    }
    return { kind: "idle", nextMs: this.#times.next(nowMs) ?? Number.POSITIVE_INFINITY };
  }

  async #fire(atMs: number, { deadlineMs }: LookOptions): Promise<Looked> {
    const { runtime, store, consume } = this.#parts;
    const { name } = this;
    const id = derivedId("schedule", name, atMs);
    let attempts: number | undefined;
    const outcome = await consume({
      claimed: [["schedule", name], text(atMs)],
      handler: name,
      cause: { causedBy: id, origRequestId: id, originator: "system" },
      isSystem: true,
      id,
      logFields: { firesAt: text(atMs) },
      logPrefix: "schedule",
      kind: "schedule",
      facts: () => ({ attempt: attempts, sinceMs: atMs }),
      deadlineMs,
      run: async (ctx) => {
        attempts = await store.begin(this.#key, atMs);
        // Throws, so that the claim is not completed.
        if (attempts === undefined)
          throw new ConflictError("schedule_begun", "The schedule has fired or fires meanwhile");
        // Logged here, because attempts that crashed their process have logged nothing.
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
        await store.skip(this.#key, atMs); // done by a process with another `cron` or `timeZone`
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
