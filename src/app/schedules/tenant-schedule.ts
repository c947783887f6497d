import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Lazy } from "../../base/process/lazy.ts";
import { Recent } from "../../base/process/recent.ts";
import { type JobMessage, jobText } from "../../parts/messages/job-message.ts";
import { type JobQueues, sendJob } from "../../parts/messages/job-route.ts";
import type { MessageGuard } from "../../parts/messages/message-guard.ts";
import { type ClaimKey, claimKey } from "../../parts/once/claim.ts";
import { derivedId } from "../../parts/once/derived-id.ts";
import type { StoredTenant, TenantPlace, TenantStore } from "../../parts/tenant-registry/tenant.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { ScheduleDeclaration } from "./schedule.ts";
import type { BegunRun, Looked, Schedule, ScheduleVariant } from "./schedule-look.ts";
import { failureMs, type ScheduleStore } from "./schedule-step.ts";

interface TenantScheduleRuntime {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly messages: Lazy<Pick<MessageGuard, "signJob">>;
}

interface TenantScheduleAdapters {
  readonly schedules: Lazy<ScheduleStore>;
  readonly tenants: Lazy<TenantStore>;
  readonly messaging: Lazy<JobQueues>;
}

/**
 * Age at which the time zones are read again, in milliseconds. Shorter than the time between two
 * checks of a schedule, so that a single schedule finds a new time zone at its next check.
 */
const zonesMs = 40_000;
/** Tenants that are read together. */
const pageSize = 100;
/** Jobs that are sent at the same time. */
const sendsAtOnce = 20;

/**
 * Returns a function that creates a schedule that runs as each tenant: one for each time zone, whose
 * run sends one job per active tenant. These schedules share the reads of the time zones.
 *
 * @param open - opens the schedule of a time zone.
 */
export async function openTenantSchedules(
  runtime: TenantScheduleRuntime,
  adapters: TenantScheduleAdapters,
  open: (declaration: ScheduleDeclaration, variant: ScheduleVariant) => Schedule,
): Promise<(declaration: ScheduleDeclaration) => Schedule> {
  const { clock, log } = runtime;
  const [store, tenants] = [await adapters.schedules.open(), await adapters.tenants.open()];
  const timeZones = createTimeZones(tenants, clock);

  return (declaration) => {
    const { name, cron } = declaration;
    const { partition } = claimKey(["schedule", name, cron], "");
    const firstLook = createFirstLook(store, { partition, sort: "first-look" });
    const zones = new Map<string, Schedule>();

    const zoneOf = (timeZone: string, createdMs: number): Schedule => {
      const known = zones.get(timeZone);
      if (known !== undefined) return known;
      const opened = open(
        { ...declaration, timeZone },
        {
          zone: timeZone,
          sinceMs: async (lookedMs) => Math.max(await firstLook(lookedMs), createdMs),
          run: (ctx, fire) => sendPages(runtime, adapters, { name, timeZone }, ctx, fire),
        },
      );
      zones.set(timeZone, opened);
      return opened;
    };

    return {
      name,
      async look(options = {}) {
        try {
          // Before any tenant exists, so that the times since then count for new time zones.
          await firstLook(options.sinceMs ?? clock.now());
          const looks = (await timeZones()).map(({ timeZone, sinceMs }) =>
            zoneOf(timeZone, sinceMs).look(options),
          );
          return together(await Promise.all(looks));
        } catch (error) {
          const reason = String(error);
          log.warn("schedule.look_failed", { handler: name, reason });
          return { kind: "failed", nextMs: clock.now() + failureMs, reason };
        }
      },
    };
  };
}

/** Reads the time zones at most once in {@link zonesMs}, unless a read fails. */
function createTimeZones(tenants: Pick<TenantStore, "timeZones">, clock: Clock) {
  const recent = new Recent<ReturnType<TenantStore["timeZones"]>>(1, zonesMs);
  return () => {
    const nowMs = clock.now();
    const known = recent.get("all", nowMs);
    if (known !== undefined) return known;
    const read = tenants.timeZones();
    recent.set("all", read, nowMs);
    read.catch(() => recent.delete("all"));
    return read;
  };
}

/** Returns the time of the first check by any process. Times before it are not due in any zone. */
function createFirstLook(store: Pick<ScheduleStore, "firstLooks" | "read" | "add">, key: ClaimKey) {
  return async (lookedMs: number): Promise<number> => {
    let known = store.firstLooks.get(key.partition);
    while (known === undefined) {
      known = (await store.read(key))?.lastMs;
      if (known === undefined) await store.add(key, lookedMs);
    }
    store.firstLooks.set(key.partition, known);
    return known;
  };
}

const byWeight: readonly Looked["kind"][] = [
  ...(["gave-up", "failed", "waiting", "elsewhere", "fired", "idle"] as const),
];

/** The result of the time zone that most needs attention, and the next time of any. */
function together(looked: readonly Looked[]): Looked {
  const [worst] = byWeight.flatMap((kind) => looked.filter((one) => one.kind === kind));
  const nextMs = Math.min(...looked.map((one) => one.nextMs));
  return { kind: "idle", ...worst, nextMs };
}

/**
 * Sends the jobs of one run, page by page. An attempt continues after the last page that an earlier
 * one has noted; jobs that are sent again have the same IDs, and run once.
 */
async function sendPages(
  { messages }: TenantScheduleRuntime,
  { tenants, messaging }: Pick<TenantScheduleAdapters, "tenants" | "messaging">,
  { name, timeZone }: { readonly name: string; readonly timeZone: string },
  ctx: PipelineContext,
  { atMs, sentTo, advance }: BegunRun,
): Promise<void> {
  const registry = await tenants.open();
  const queues = await messaging.open();
  const guard = await messages.open();
  const fireId = derivedId("schedule", name, "zone", timeZone, atMs);

  const send = async ({ tenantId }: StoredTenant): Promise<void> => {
    const jobId = derivedId("schedule", name, tenantId, atMs);
    const job: JobMessage = {
      ...{ jobId, name, payload: { at: new Date(atMs).toISOString() } },
      ...{ causedBy: fireId, origRequestId: fireId, originator: "system", tenantId },
    };
    const text = jobText(job, { proof: await guard.signJob(job), trace: ctx.trace.headers() });
    // Equal jobs have equal IDs, so they need neither an order nor another key.
    await sendJob(queues, { name, tenantId, text, group: jobId, deduplicationId: jobId });
  };

  let after: TenantPlace | undefined;
  if (sentTo !== undefined) after = { tenantId: sentTo, timeZone };
  let count = 0;
  for (;;) {
    const { items, next } = await registry.page(pageSize, after, timeZone);
    // A tenant that did not exist at this time joins at the next one.
    const due = items.filter((one) => one.suspendedMs === undefined && one.createdMs < atMs);
    for (let from = 0; from < due.length; from += sendsAtOnce)
      await Promise.all(due.slice(from, from + sendsAtOnce).map(send));
    count += due.length;
    if (next === undefined) break;
    after = next;
    await advance(next.tenantId);
  }
  ctx.log.info("schedule.sent", { timeZone, tenants: count });
}
