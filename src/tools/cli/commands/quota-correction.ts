import { quotaHandle } from "../../../app/handlers/quota-handle.ts";
import { checkRunOptions, runOutside } from "../../../app/run/outside-run.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { quoted } from "../../../base/errors/quoted.ts";
import { refuse } from "../setup/define-command.ts";
import { quotaLine } from "./quota-rows.ts";

export interface QuotaCorrection {
  readonly tenantId: string;
  /** Full name of the quota: `files.storage`. */
  readonly quota: string;
  readonly used: number;
  readonly reason: string;
}

/**
 * Sets the usage of a tenant in the current period, as `quota.set` does, and logs it.
 * @returns the quota's line.
 */
export async function correctQuota(
  runtime: Runtime,
  { tenantId, quota, used, reason }: QuotaCorrection,
): Promise<string> {
  const { quotas } = runtime.server.registry;
  const declared = quotas.get(quota);
  if (declared === undefined) {
    const names = [...quotas.keys()].join(", ") || "none";
    refuse(`${quoted(quota)} is not a quota of this server; it declares ${names}`);
  }
  const options = { reason, tenantId };
  checkRunOptions(options);
  const handle = quotaHandle(declared);
  const before = await runOutside(runtime, {
    options,
    signal: new AbortController().signal,
    isOperator: true,
    work: async (ctx) => {
      // A row that cannot be read is one to correct.
      const before = await handle.get(ctx).then(
        (quota) => quota.used,
        () => undefined,
      );
      await handle.set(ctx, used);
      return before;
    },
  });
  runtime.log.info("quota.corrected", { quota, tenantId, before, used, reason });
  return quotaLine(runtime, tenantId, declared);
}
