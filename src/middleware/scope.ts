import type { Runtime } from "../app/runtime.ts";
import { type AmbientStore, runWithStore } from "../context/ambient.ts";
import { adoptRequestId } from "../context/request-id.ts";
import { parseTrace } from "../context/trace.ts";
import type { User } from "../identity/user.ts";
import type { Logger } from "../log/logger.ts";

/** One request on its way through: its ambient store, and a logger that knows what is known so far. */
export interface RequestScope extends AmbientStore {
  readonly runtime: Runtime;
  /** Carries `requestId`, and `handler`, `tenantId` and `userId` once they are known. */
  log: Logger;
}

/** What a scope is opened with. */
export interface ScopeFacts {
  /** Prototype-free, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
}

/**
 * Opens the scope of a request: adopts or makes its ID (specification 4.4) and runs `work`
 * with the ambient context.
 */
export function runInScope<Result>(
  runtime: Runtime,
  { headers, signal }: ScopeFacts,
  work: (scope: RequestScope) => Promise<Result>,
): Promise<Result> {
  const { requestId, rejectedLength } = adoptRequestId(headers["x-request-id"], runtime.newRequestId);
  const trace = parseTrace(headers, runtime.variables);
  const scope: RequestScope = {
    context: Object.freeze({ requestId, tenantId: undefined, userId: undefined, signal, trace }),
    tableName: runtime.tableName,
    runtime,
    log: runtime.log.child({ requestId }),
  };
  return runWithStore(scope, () => {
    if (rejectedLength !== undefined) scope.log.warn("request_id.rejected", { length: rejectedLength });
    return work(scope);
  });
}

/** Records which handler answers the request. */
export function nameHandler(scope: RequestScope, handler: string): void {
  scope.log = scope.log.child({ handler });
}

/** Records who calls, in the ambient context and in the log. */
export function identify(scope: RequestScope, { id, tenantId }: User): void {
  scope.context = Object.freeze({ ...scope.context, tenantId, userId: id });
  scope.log = scope.log.child({ tenantId, userId: id });
}
