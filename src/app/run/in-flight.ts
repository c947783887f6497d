import { FrameworkError } from "../../base/errors/errors.ts";
import type { Limits } from "../../parts/http/limits.ts";
import { createContext } from "../ctx/context.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { ObservedRun } from "../observe/run-observer.ts";
import type { TenantsInFlight } from "../runtime/runtime.ts";
import type { RequestScope } from "../runtime/scope.ts";

type Limit = NonNullable<Limits["inFlightPerTenant"]>;

/**
 * Counts the requests of each tenant in this process. A request counts until the host reports its
 * end: its response is sent or, if its client has left, its handler has ended. A stream ends when
 * its client leaves.
 */
export function limitInFlight(limit: Limit): TenantsInFlight {
  const byTenant = new Map<string, Set<ObservedRun>>();
  return {
    enter: async (run, handler) => {
      const scope = run as RequestScope; // safe: only the pipeline calls this
      const { tenantId } = scope.user;
      const isOwn = !scope.runtime.server.registry.handlers.has(handler.name);
      if (tenantId === undefined || isOwn) return;
      const most = typeof limit === "number" ? limit : await numberOf(scope, handler, limit);
      // A request whose end was reported in the meantime would count forever.
      scope.signal?.throwIfAborted();
      const running = byTenant.get(tenantId) ?? new Set();
      if (running.size >= most) throw tooMany();
      byTenant.set(tenantId, running.add(scope));
    },
    ended: (scope) => {
      const { tenantId } = scope.user;
      const running = tenantId === undefined ? undefined : byTenant.get(tenantId);
      if (running?.delete(scope) && running.size === 0) byTenant.delete(tenantId as string);
    },
  };
}

/** Reads the caller's number. A configuration that cannot be read refuses no request. */
async function numberOf(
  scope: RequestScope,
  handler: HandlerDeclaration,
  key: Exclude<Limit, number>,
): Promise<number> {
  const { adapters } = scope.runtime;
  try {
    return await createContext(scope, await adapters.openFor(handler), {}).config(key);
  } catch {
    const { default: fallback = Number.POSITIVE_INFINITY } = key.definition;
    return fallback as number; // safe: the default of a number key is a number
  }
}

function tooMany(): FrameworkError {
  const message = "Too many requests of this tenant are in progress; try again later";
  return new FrameworkError("too_many_requests", message, { headers: { "retry-after": "1" } });
}
