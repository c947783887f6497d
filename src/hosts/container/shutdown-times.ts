import type { Runtime } from "../../app/runtime/runtime.ts";
import { isReloaded } from "../../base/process/environment.ts";
import { webFunctionEndpoint } from "../../base/process/platform.ts";
import {
  mergedTimes,
  type ShutdownTimes,
  webFunctionMs,
} from "../../base/process/shutdown-limits.ts";

/** When most platforms kill a process that they have told to stop, in milliseconds. */
const platformMs = 30_000;

/** A process that restarts on source changes has no load balancer to notify, so no linger. */
export function shutdownTimes(
  runtime: Pick<Runtime, "environment" | "variables">,
  given: Partial<ShutdownTimes> = {},
): ShutdownTimes {
  const isWebFunction = webFunctionEndpoint(runtime.variables) !== undefined;
  const times = mergedTimes(given, isWebFunction || undefined);
  return isReloaded(runtime) ? { ...times, lingerMs: 0 } : times;
}

export function warnOfPlatform(
  runtime: Pick<Runtime, "environment" | "variables" | "log">,
  given: Partial<ShutdownTimes> = {},
): void {
  const { totalMs } = shutdownTimes(runtime, given);
  if (webFunctionEndpoint(runtime.variables) !== undefined) {
    const fix = `set shutdown.totalMs to at most ${webFunctionMs}: Lambda kills a Web Function then`;
    if (totalMs > webFunctionMs) runtime.log.warn("shutdown.platform_limit", { totalMs, fix });
    return;
  }
  if (runtime.environment !== "production" || totalMs <= platformMs) return;
  const least = Math.ceil(totalMs / 1_000);
  runtime.log.warn("shutdown.platform_limit", {
    totalMs,
    fix: `set terminationGracePeriodSeconds (Kubernetes) or stopTimeout (ECS) to more than ${least} seconds; their default is 30`,
  });
}
