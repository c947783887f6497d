import type { Runtime } from "../../app/runtime/runtime.ts";
import { needsIdentity } from "../../base/identity/access.ts";
import { isReloaded, type Variables } from "../../base/process/environment.ts";
import { defaultTimes, platformMs, type ShutdownTimes } from "../../base/process/lifecycle.ts";
import type { Binding } from "./adapters.ts";

/**
 * Returns the shutdown times, without a linger for a process that restarts on source changes,
 * because it has no load balancer to notify.
 */
export function shutdownTimes(runtime: Runtime, given: Partial<ShutdownTimes> = {}): ShutdownTimes {
  const times = { ...defaultTimes, ...given };
  return isReloaded(runtime) ? { ...times, lingerMs: 0 } : times;
}

export function warnOfPlatform(runtime: Runtime, given: Partial<ShutdownTimes> = {}): void {
  const { totalMs } = { ...defaultTimes, ...given };
  if (runtime.environment !== "production" || totalMs <= platformMs) return;
  const least = Math.ceil(totalMs / 1_000);
  runtime.log.warn("shutdown.platform_limit", {
    totalMs,
    fix: `set terminationGracePeriodSeconds (Kubernetes) or stopTimeout (ECS) to more than ${least} seconds; their default is 30`,
  });
}

export function portOf(port: number | undefined, variables: Variables): number {
  const given =
    port ??
    (variables["PORT"] === undefined || variables["PORT"] === ""
      ? 3000
      : Number(variables["PORT"]));
  if (!Number.isInteger(given) || given < 0 || given > 65_535) {
    throw new Error(
      `PORT: ${JSON.stringify(port ?? variables["PORT"])} is not a port; set a number from 0 to 65535`,
    );
  }
  return given;
}

/** @throws Error if a handler needs an identity but the server cannot verify tokens. */
export function requireTokens(runtime: Runtime, { developmentSecret }: Binding): void {
  const needy = [...runtime.server.registry.handlers.values()].find(
    ({ access }) => access !== undefined && needsIdentity(access),
  );
  if (!runtime.verifiesTokens && developmentSecret === undefined && needy !== undefined) {
    throw new Error(
      `${needy.name} needs to know who calls, and nothing can verify a token; set KEELSON_AUTH_SECRET, or \`auth\` in buildServer; or NODE_ENV=development, which has a secret of its own`,
    );
  }
}
