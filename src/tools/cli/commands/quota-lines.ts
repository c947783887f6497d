import { createContext } from "../../../app/ctx/context.ts";
import type { QuotaDeclaration, QuotaUsage } from "../../../app/handlers/quota.ts";
import { quotaHandle } from "../../../app/handlers/quota-handle.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { runInMessageScope } from "../../../app/runtime/scope.ts";
import { anonymous } from "../../../base/identity/access.ts";
import { quotaPeriod } from "../../../parts/limits/quota-period.ts";

/**
 * Returns a line for each quota of a tenant that has a row in the current period; without a tenant,
 * for each quota that a tenant has used up.
 */
export async function quotaLines(runtime: Runtime, tenant: string | undefined): Promise<string[]> {
  const { adapters, clock, server } = runtime;
  const { quotas } = server.registry;
  if (quotas.size === 0) return [];
  const store = await (await adapters.open()).quotas.open();
  const lines: string[] = [];
  for await (const { tenantId, quota, period } of store.list(tenant)) {
    const declared = quotas.get(quota);
    if (declared === undefined) continue;
    const { window, timeZone } = declared;
    if (quotaPeriod(window, timeZone, clock.now()).id !== period) continue;
    const usage = await usageOf(runtime, tenantId, quotaHandle(declared));
    if (tenant === undefined && usage.used < usage.limit) continue;
    lines.push(lineOf(declared, tenantId, usage));
  }
  return lines;
}

/** Returns the line of one quota of a tenant. */
export async function quotaLine(
  runtime: Runtime,
  tenantId: string,
  declared: QuotaDeclaration,
): Promise<string> {
  return lineOf(declared, tenantId, await usageOf(runtime, tenantId, quotaHandle(declared)));
}

function lineOf(
  { name, limit: key, window }: QuotaDeclaration,
  tenantId: string,
  { used, limit, resetsAt }: QuotaUsage,
): string {
  const named = typeof key === "number" ? undefined : key.id;
  const found = { limit: name, kind: "quota", key: named, tenantId, window };
  return JSON.stringify({ ...found, taken: used, number: limit, until: resetsAt });
}

function usageOf(
  runtime: Runtime,
  tenantId: string,
  quota: ReturnType<typeof quotaHandle>,
): Promise<QuotaUsage> {
  const facts = {
    requestId: runtime.newRequestId(),
    user: Object.freeze({ ...anonymous, tenantId }),
    handler: "keelson.limits",
    deadlineMs: undefined,
    isSystem: false,
    logFields: {},
  };
  return runInMessageScope(runtime, facts, async (scope) =>
    quota.get(createContext(scope, await runtime.adapters.open(), {})),
  );
}
