import type { Logger } from "../../base/log/logger.ts";
import type { Tenants } from "../../parts/tenant-registry/tenant.ts";
import { createTenants } from "../../parts/tenant-registry/tenants.ts";
import type { Runtime } from "../runtime/runtime.ts";

interface TenantsRuntime extends Pick<Runtime, "suspensions" | "adapters" | "clock"> {
  readonly log: Pick<Logger, "info">;
}

/** @throws Error if the server does not register tenants. */
export async function openTenants({
  suspensions,
  adapters,
  clock,
  log,
}: TenantsRuntime): Promise<Tenants> {
  if (suspensions === undefined)
    throw new Error("the server registers no tenants; pass tenants: true to buildServer");
  const store = await (await adapters.open()).tenants.open();
  return createTenants({ store, suspensions: await suspensions.open(), clock, log });
}
