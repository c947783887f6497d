import { createContext } from "../../../app/ctx/context.ts";
import type { QuotaDeclaration, QuotaUsage } from "../../../app/handlers/quota.ts";
import { quotaHandle } from "../../../app/handlers/quota-handle.ts";
import { onceTable } from "../../../app/handlers/table.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { runInMessageScope } from "../../../app/runtime/scope.ts";
import { quoted } from "../../../base/errors/quoted.ts";
import { anonymous } from "../../../base/identity/access.ts";
import { quotaPeriod } from "../../../parts/limits/quota-period.ts";
import { type CommandContext, messageOf } from "../setup/define-command.ts";
import { shownScan } from "../setup/shown-scan.ts";

/**
 * Yields a row for each quota of a tenant that has a row in the current period; without a tenant,
 * for each quota that a tenant has used up. Complains of those whose usage or limit cannot be read.
 */
export async function* quotaRows(
  runtime: Runtime,
  tenant: string | undefined,
  context: Pick<CommandContext, "complain" | "progress">,
): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const { adapters, clock, server, tableName } = runtime;
  const { quotas } = server.registry;
  if (quotas.size === 0) return;
  const store = await (await adapters.open()).quotas.open();
  const what = `quotas, ${tableName(onceTable.name)}`;
  const stored = shownScan(context, what, (onPage) => store.list(tenant, onPage));
  for await (const { tenantId, quota, period } of stored) {
    const declared = quotas.get(quota);
    if (declared === undefined) continue;
    const { window, timeZone } = declared;
    if (quotaPeriod(window, timeZone, clock.now()).id !== period) continue;
    const usage = await usageOf(runtime, tenantId, quotaHandle(declared)).catch(
      (error: unknown) => {
        const of = `the quota ${quota} of ${quoted(tenantId)}`;
        context.complain(`keelson: ${of} cannot be read: ${messageOf(error)}`);
      },
    );
    if (usage === undefined || (tenant === undefined && usage.used < usage.limit)) continue;
    yield rowOf(declared, tenantId, usage);
  }
}

/** Returns the line of one quota of a tenant. */
export async function quotaLine(
  runtime: Runtime,
  tenantId: string,
  declared: QuotaDeclaration,
): Promise<string> {
  return JSON.stringify(
    rowOf(declared, tenantId, await usageOf(runtime, tenantId, quotaHandle(declared))),
  );
}

function rowOf(
  { name, limit: key, window }: QuotaDeclaration,
  tenantId: string,
  { used, limit, resetsAt }: QuotaUsage,
) {
  const named = typeof key === "number" ? undefined : key.id;
  const found = { limit: name, kind: "quota", key: named, tenantId, window };
  return { ...found, taken: used, number: limit, until: resetsAt, since: undefined };
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
