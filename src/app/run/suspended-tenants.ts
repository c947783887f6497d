import { errorLog } from "../../base/errors/describe.ts";
import { createSuspensions, type Suspensions } from "../../parts/tenant-registry/suspensions.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Creates a runtime's cache of suspended tenants. */
export function createSuspensionsOf({
  adapters,
  clock,
  log,
}: Pick<Runtime, "adapters" | "clock" | "log">): Suspensions {
  return createSuspensions({
    store: async () => (await adapters.open()).tenants.open(),
    clock,
    onUnreadable: (error) => log.warn("tenant.registry_unreadable", errorLog(error).data),
  });
}
