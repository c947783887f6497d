import { quoted } from "../../base/errors/quoted.ts";
import type { QuotaChange, QuotaRow } from "../../parts/limits/quota-change.ts";
import { QuotaExceededError } from "../../parts/limits/quota-error.ts";
import { quotaPeriod } from "../../parts/limits/quota-period.ts";
import type { QuotaContext, QuotaDeclaration, QuotaUsage, QuotaUse } from "./quota.ts";

/** Call of `set` or of `add`, with a number that is not checked yet. */
export type QuotaCall = { readonly set: unknown } | { readonly add: unknown };

/** Makes the change of one call. @throws the errors of `add` in {@link Quota}. */
export async function change(
  declared: QuotaDeclaration,
  ctx: QuotaContext,
  use: QuotaUse,
  what: QuotaCall,
): Promise<QuotaChange> {
  const numbers = numbersOf(declared, what);
  const row = rowOf(declared, ctx, use);
  const limit = await limitOf(declared, ctx);
  return { row, ...numbers, limit, refusal: (used) => refusal(declared, row, used, limit) };
}

/** The member that is present decides, because plain JavaScript can pass `undefined`. */
function numbersOf({ name }: QuotaDeclaration, what: QuotaCall): Pick<QuotaChange, "set" | "add"> {
  if ("add" in what) {
    const { add } = what;
    if (isWhole(add)) return { add };
    throw new TypeError(`quota ${name}: ${quoted(add)} is not a whole number`);
  }
  const { set } = what;
  if (isWhole(set) && set >= 0) return { set, add: 0 };
  throw new TypeError(`quota ${name}: ${quoted(set)} is not a whole number from 0`);
}

export async function usage(
  declared: QuotaDeclaration,
  ctx: QuotaContext,
  use: QuotaUse,
): Promise<QuotaUsage> {
  const row = rowOf(declared, ctx, use);
  const [store, limit] = await Promise.all([use.store(), limitOf(declared, ctx)]);
  const { endsAtMs } = row.period;
  const resetsAt = endsAtMs === undefined ? undefined : new Date(endsAtMs);
  return { used: (await store.read(row)) ?? 0, limit, resetsAt };
}

function isWhole(number: unknown): number is number {
  return Number.isSafeInteger(number);
}

function rowOf(
  { name, window, timeZone }: QuotaDeclaration,
  { user: { tenantId } }: QuotaContext,
  { nowMs }: QuotaUse,
): QuotaRow {
  if (tenantId === undefined)
    throw new TypeError(`quota ${name}: this run has no tenant, and quotas count by tenant`);
  return { tenantId, quota: name, period: quotaPeriod(window, timeZone, nowMs) };
}

async function limitOf({ name, limit }: QuotaDeclaration, ctx: QuotaContext): Promise<number> {
  const value: unknown = await (typeof limit === "number" ? limit : ctx.config(limit));
  if (typeof value === "number" && value >= 0)
    return Math.min(Math.floor(value), Number.MAX_SAFE_INTEGER);
  throw new TypeError(
    `quota ${name}: its limit is ${quoted(value)}; give the key a default, and bounds from 0`,
  );
}

function refusal(
  { name, status }: QuotaDeclaration,
  { period: { endsAtMs } }: QuotaRow,
  used: number,
  limit: number,
) {
  const resets = endsAtMs === undefined ? {} : { resetsAt: new Date(endsAtMs).toISOString() };
  return new QuotaExceededError({ quota: name, used, limit, ...resets }, status);
}
