import { ConflictError, isPermanent } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import { type Clock, pause } from "../../base/process/clock.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import type { Cause } from "../../parts/messages/envelope.ts";
import type { JobQueues } from "../../parts/messages/job-route.ts";
import type { MessageGuard } from "../../parts/messages/message-guard.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import type { TransactionItem } from "../../parts/once/claim-store.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { TenantStore } from "../../parts/tenant-registry/tenant.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { fireTimes } from "./fire-times.ts";
import type { ScheduleDeclaration } from "./schedule.ts";
import type { Looked, LookOptions, Schedule, ScheduleVariant } from "./schedule-look.ts";
import {
  attemptsSincePage,
  type BegunAttempt,
  failureMs,
  maxAttempts,
  retryOf,
  type ScheduleStore,
  scheduleStep,
} from "./schedule-step.ts";

/** One scheduled run, under the claim of its time. */
interface FireTask extends ReturnType<typeof fireIdentity> {
  readonly facts: () => { readonly attempt?: number | undefined; readonly sinceMs: number };
  readonly deadlineMs: number | undefined;
  readonly run: (ctx: PipelineContext) => unknown;
  /** Items for the transaction that completes the claim. */
  readonly own: () => readonly TransactionItem[];
}

/** Outcome of one task: a consumer's run, a job, or a run of a schedule. */
export type TaskOutcome =
  | { readonly kind: "processed" }
  | { readonly kind: "skipped" }
  /**
   * A duplicate is running, for at most `afterMs` milliseconds; or, if it `mustWait`, a limit is
   * reached, for at least that time.
   */
  | { readonly kind: "handed-back"; readonly afterMs: number; readonly mustWait?: boolean }
  | { readonly kind: "failed"; readonly error: unknown };

interface ScheduleRuntime {
  readonly server: {
    readonly registry: { readonly schedules: ReadonlyMap<string, ScheduleDeclaration> };
  };
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "error">;
  readonly metrics: Pick<Metrics, "record"> | undefined;
  readonly messages: Lazy<Pick<MessageGuard, "signJob">>;
}

interface ScheduleAdapters {
  readonly schedules: Lazy<ScheduleStore>;
  readonly tenants: Lazy<TenantStore>;
  readonly messaging: Lazy<JobQueues>;
}

/**
 * Creates the schedules of a server.
 * @param consume - runs a task under its claim, and never throws.
 */
export async function createSchedules<
  Runtime extends ScheduleRuntime,
  Adapters extends ScheduleAdapters,
>(
  runtime: Runtime,
  adapters: Adapters,
  consume: (runtime: Runtime, adapters: Adapters, task: FireTask) => Promise<TaskOutcome>,
): Promise<readonly Schedule[]> {
  const store = await adapters.schedules.open();
  const run = (task: FireTask) => consume(runtime, adapters, task);
  const open = (declaration: ScheduleDeclaration, variant: ScheduleVariant) =>
    createSchedule(runtime, store, declaration, variant, run);
  const forTenants = lazy(async () => {
    const { openTenantSchedules } = await import("./tenant-schedule.ts");
    return openTenantSchedules(runtime, adapters, open);
  });
  return Promise.all(
    [...runtime.server.registry.schedules.values()].map(async (declaration) => {
      if (declaration.for !== undefined) return (await forTenants.open())(declaration);
      return open(declaration, {
        sinceMs: (lookedMs) => lookedMs,
        run: (ctx, { atMs }) => declaration.run(ctx, { at: new Date(atMs) }),
      });
    }),
  );
}

function createSchedule(
  { clock, log, metrics }: ScheduleRuntime,
  store: ScheduleStore,
  { name, cron, timeZone, missed }: ScheduleDeclaration,
  variant: ScheduleVariant,
  consume: (task: FireTask) => Promise<TaskOutcome>,
): Schedule {
  const times = fireTimes(cron, timeZone);
  const key = recordKey([name, cron, timeZone], variant);
  const countGivenUp = () =>
    metrics?.record("keelson.dead_letters", 1, { "keelson.kind": "schedule" });

  const lookNow = async ({ deadlineMs, sinceMs }: LookOptions): Promise<Looked> => {
    const nowMs = clock.now();
    const dueMs = store.idleUntil.get(key.partition);
    if (dueMs !== undefined && nowMs < dueMs) return { kind: "idle", nextMs: dueMs };
    const found = await store.read(key);
    let record = found;
    if (record === undefined) {
      // If the record was deleted since this process read it, the time that is due still counts.
      record = { lastMs: await variant.sinceMs(sinceMs ?? (dueMs ?? nowMs + 1) - 1) };
      await store.add(key, record.lastMs);
    }
    const step = scheduleStep(record, { nowMs, missed, lastFire: () => times.last(nowMs) });
    if (step.kind === "fire") return fire(step.atMs, deadlineMs);
    if (step.kind === "wait") return { kind: "waiting", nextMs: step.untilMs };
    if (step.kind === "pass" && (await store.pass(key, record.lastMs, step.atMs)))
      log.warn("schedule.missed", { handler: name, firesAt: text(step.atMs) });
    const nextMs = times.next(nowMs);
    // Another process may have added or changed the record, so that a time is due.
    if (step.kind === "none" && found !== undefined) store.idleUntil.set(key.partition, nextMs);
    return { kind: "idle", nextMs };
  };

  const fire = async (atMs: number, deadlineMs: number | undefined): Promise<Looked> => {
    let begun: BegunAttempt | undefined;
    const outcome = await consume({
      ...fireIdentity(name, atMs, variant.zone),
      facts: () => ({ attempt: begun?.attempts, sinceMs: atMs }),
      deadlineMs,
      run: async (ctx) => {
        begun = await store.begin(key, atMs);
        // Throws, so that the claim is not completed.
        if (begun === undefined) throw taken("The schedule has already fired, or is firing");
        const { attempts, sent } = begun;
        // Logged here, because attempts that crashed their process have logged nothing.
        if (attemptsSincePage(begun) > maxAttempts) {
          ctx.log.error("schedule.gave_up", { attempts: maxAttempts });
          countGivenUp();
          return;
        }
        const advance = async (tenantId: string) => {
          const page = { atMs, attempts, tenantId };
          if (!(await store.advance(key, page)))
            throw taken("Another process has taken over this run");
          begun = { attempts, sent: page };
        };
        await variant.run(ctx, { atMs, sentTo: sent?.tenantId, advance });
      },
      own: () => [store.done(key, atMs)],
    });
    const nowMs = clock.now();
    switch (outcome.kind) {
      case "processed":
        return { kind: "fired", nextMs: nowMs };
      case "failed":
        if (begun === undefined) return { kind: "failed", nextMs: nowMs + failureMs };
        return failed(atMs, begun, outcome.error);
      case "skipped":
        await store.skip(key, atMs); // done by a process with another `cron` or `timeZone`
        return { kind: "elsewhere", nextMs: nowMs };
      case "handed-back":
        return { kind: "elsewhere", nextMs: nowMs + Math.max(outcome.afterMs, failureMs) };
    }
  };

  const failed = async (atMs: number, begun: BegunAttempt, error: unknown): Promise<Looked> => {
    const nowMs = clock.now();
    const { attempts } = begun;
    const retryMs = isPermanent(error) ? undefined : retryOf(attemptsSincePage(begun), nowMs);
    if (retryMs !== undefined) {
      await store.postpone(key, { atMs, attempts, retryMs });
      return { kind: "failed", nextMs: retryMs };
    }
    if (await store.giveUp(key, { atMs, attempts })) {
      log.error("schedule.gave_up", { handler: name, firesAt: text(atMs), attempts });
      countGivenUp();
    }
    return { kind: "gave-up", nextMs: nowMs, reason: String(error) };
  };

  return {
    name,
    look: (options = {}) =>
      lookNow(options).catch((error: unknown): Looked => {
        log.warn("schedule.look_failed", { handler: name, reason: String(error) });
        return { kind: "failed", nextMs: clock.now() + failureMs };
      }),
  };
}

/** A new `cron`, `timeZone` or `for` gets a new key, so that no run of the old record is missed. */
function recordKey(schedule: readonly string[], { zone }: ScheduleVariant): ClaimKey {
  const own = zone === undefined ? [] : ["zone"];
  return { partition: claimKey(["schedule", ...schedule, ...own], "").partition, sort: "fires" };
}

function taken(message: string): ConflictError {
  return new ConflictError("schedule_begun", message);
}

function fireIdentity(name: string, atMs: number, zone: string | undefined) {
  const own = zone === undefined ? [] : ["zone", zone];
  const id = derivedId("schedule", name, ...own, atMs);
  const claimed: Parameters<typeof claimKey> = [["schedule", name, ...own], text(atMs)];
  const cause: Cause = { causedBy: id, origRequestId: id, originator: "system" };
  const logFields = { firesAt: text(atMs) };
  const kind = { logPrefix: "schedule", kind: "schedule", isSystem: true } as const;
  return { claimed, handler: name, cause, id, logFields, ...kind };
}

function text(atMs: number) {
  return new Date(atMs).toISOString();
}

/** Minimum and maximum delay until the next check, in milliseconds. */
const [leastMs, mostMs] = [20, 60_000];

/** Runs schedules when they are due. Resolves once `stop` has aborted and no run is left. */
export async function keepSchedules(
  schedules: readonly Schedule[],
  clock: Clock,
  stop: AbortSignal,
) {
  // Checks at least once a minute, because a clock may jump and a process may leave a run unfinished.
  const keep = async (schedule: Schedule) => {
    while (!stop.aborted) {
      const { nextMs } = await schedule.look();
      const latestMs = mostMs * (0.75 + Math.random() / 4); // staggers processes
      await pause(Math.min(Math.max(nextMs - clock.now(), leastMs), latestMs), stop);
    }
  };
  await Promise.all(schedules.map(keep));
}
