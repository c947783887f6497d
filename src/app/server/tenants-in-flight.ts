import type { DeclaredServer } from "../registry/declared-server.ts";
import type { TenantsInFlight } from "../runtime/runtime.ts";

/** Loads the limit only for a server that declares `limits.inFlightPerTenant`. */
export async function openTenantsInFlight({
  options,
}: DeclaredServer): Promise<TenantsInFlight | undefined> {
  const limit = options.limits?.inFlightPerTenant;
  if (limit === undefined) return undefined;
  return (await import("../run/in-flight.ts")).limitInFlight(limit);
}
