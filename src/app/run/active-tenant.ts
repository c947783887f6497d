import type { User } from "../../base/identity/access.ts";
import type { Runtime } from "../runtime/runtime.ts";

interface BeginningRun {
  readonly runtime: Pick<Runtime, "suspensions">;
  readonly user: Pick<User, "tenantId">;
}

/**
 * Checks the tenant of a run that starts, if the server registers tenants. Work that was accepted
 * before, such as jobs, is not checked.
 *
 * @throws FrameworkError `tenant_suspended` (403); PipelineError 503 if the registry cannot be read
 * and the state is not known.
 */
export async function assertActive({ runtime, user }: BeginningRun): Promise<void> {
  const { suspensions } = runtime;
  if (suspensions === undefined || user.tenantId === undefined) return;
  await (suspensions.value ?? (await suspensions.open())).assertActive(user.tenantId);
}
