import {
  type Quota,
  type QuotaContext,
  type QuotaDeclaration,
  type QuotaUse,
  quotaUse,
} from "./quota.ts";
import type { QuotaCall } from "./quota-calls.ts";

export function quotaHandle(declared: QuotaDeclaration): Quota {
  const { name } = declared;
  const calls = () => import("./quota-calls.ts");
  // Reaches the run immediately, so that the run also waits for a call without an `await`.
  const count = (ctx: QuotaContext, what: QuotaCall) => {
    const use = useOf(name, ctx);
    return use.count(name, async () => (await calls()).change(declared, ctx, use, what));
  };
  return Object.freeze({
    name,
    add: (ctx: QuotaContext, number: number) => count(ctx, { add: number }),
    set: (ctx: QuotaContext, used: number) => count(ctx, { set: used }),
    get: async (ctx: QuotaContext) => (await calls()).usage(declared, ctx, useOf(name, ctx)),
  });
}

/** Safe cast: every `ctx` has the member, and a copy of one loses it. */
function useOf(name: string, ctx: QuotaContext): QuotaUse {
  const use = (ctx as { [quotaUse]?(): QuotaUse })[quotaUse]?.();
  if (use !== undefined) return use;
  throw new TypeError(`quota ${name}: this is not a ctx; pass the ctx of the handler, not a copy`);
}
