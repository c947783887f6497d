import { defined } from "../../base/types/defined.ts";
import type { LimitUse } from "../../parts/config/operate/limit-use.ts";
import {
  type OperatorContext,
  openOperatorSession,
} from "../../parts/config/operate/operator-session.ts";
import type { RowOwner } from "../../parts/config/read/rows.ts";
import { quotaPeriod } from "../../parts/limits/quota-period.ts";
import { partitionOf } from "../../parts/limits/rate-partition.ts";
import { windowMs, windowStart } from "../../parts/limits/rate-window.ts";
import type { ReadingSession } from "../ctx/reads.ts";
import type { QuotaDeclaration } from "../handlers/quota.ts";
import { allRates, type PlacedRate } from "../registry/rate-limits.ts";
import type { Runtime } from "../runtime/runtime.ts";

interface Used {
  readonly taken: number;
  readonly endsAtMs: number | undefined;
}

/**
 * Lists the limits of the server that read a key, with the use of its owner as far as one read of
 * a row shows it. Never throws: without the store, uses are absent.
 */
export async function limitUses(
  ctx: OperatorContext,
  key: string,
  owner: RowOwner,
  value: unknown,
): Promise<readonly LimitUse[]> {
  // Safe casts: every session of a ctx has the runtime of its server.
  const session = openOperatorSession(ctx, owner) as ReadingSession;
  const runtime = session.runtime as Runtime;
  const { registry, options } = runtime.server;
  const reads = (limit: unknown) => Object(limit).id === key;
  const rates = allRates(runtime.server).filter(({ facts }) => facts.key === key);
  const quotas = [...registry.quotas.values()].filter(({ limit }) => reads(limit));
  const counted = [
    ...rates.map(async ({ facts, limit }): Promise<LimitUse> => {
      const use = await known(() => rateUse(runtime, limit.per, facts, owner, value));
      return { limit: facts.id, kind: "rate", window: facts.window, ...shown(use, value) };
    }),
    ...quotas.map(async (quota): Promise<LimitUse> => {
      const use = await known(() => quotaUse(runtime, quota, owner));
      return { limit: quota.name, kind: "quota", window: quota.window, ...shown(use, value) };
    }),
  ];
  const slots = [...registry.jobs.values(), ...registry.consumers.values()].flatMap(
    ({ name, concurrency = {} }) =>
      Object.entries(concurrency)
        .filter(([, limit]) => reads(limit))
        .map(([of]): LimitUse => ({ limit: `${name} ${of}`, kind: "concurrency" })),
  );
  const inFlight = reads(options.limits?.inFlightPerTenant)
    ? [{ limit: "server inFlightPerTenant", kind: "in-flight" } as const]
    : [];
  return [...(await Promise.all(counted)), ...slots, ...inFlight];
}

/** Other partitions would take a scan, or are not the owner's. */
async function rateUse(
  { adapters, clock }: Runtime,
  per: PlacedRate["limit"]["per"],
  limit: PlacedRate["facts"],
  { tenantId, userId }: RowOwner,
  value: unknown,
): Promise<Used | undefined> {
  if (per !== "tenant" && per !== "user") return undefined;
  if ((per === "tenant" ? tenantId : userId) === undefined) return undefined;
  const startMs = windowStart(windowMs[limit.window], clock.now());
  const caller = { user: { id: userId, tenantId }, ip: undefined };
  const { rates } = await adapters.open();
  const read = await (await rates.open()).read({ ...partitionOf(per, caller), limit, startMs });
  // The last lease of a window may exceed the number.
  const taken = typeof value === "number" ? Math.min(read, Math.floor(value)) : read;
  return { taken, endsAtMs: startMs + windowMs[limit.window] };
}

async function quotaUse(
  { adapters, clock }: Runtime,
  { name: quota, window, timeZone }: QuotaDeclaration,
  { tenantId }: RowOwner,
): Promise<Used | undefined> {
  if (tenantId === undefined) return undefined;
  const period = quotaPeriod(window, timeZone, clock.now());
  const { quotas } = await adapters.open();
  const taken = (await (await quotas.open()).read({ tenantId, quota, period })) ?? 0;
  return { taken, endsAtMs: period.endsAtMs };
}

async function known(read: () => Promise<Used | undefined>): Promise<Used | undefined> {
  try {
    return await read();
  } catch {
    return undefined;
  }
}

function shown(
  use: Used | undefined,
  value: unknown,
): Pick<LimitUse, "taken" | "limited" | "until"> {
  if (use === undefined) return {};
  const { taken, endsAtMs } = use;
  const until = endsAtMs === undefined ? undefined : new Date(endsAtMs).toISOString();
  const limited = typeof value === "number" ? taken >= Math.floor(value) : undefined;
  return { taken, ...defined({ limited, until }) };
}
