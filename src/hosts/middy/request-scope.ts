import type { PipelineContext } from "../../app/handlers/pipeline-context.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { isAccessRule } from "../../base/identity/access.ts";
import { prepareLambda } from "../lambda-http/bind.ts";
import { type ExecutionMode, lazyMode } from "../lambda-http/lazy-mode.ts";
import type { RequestScopeOptions } from "./adopted-handler.ts";

/** Property that {@link requestScope} adds to the handler's Lambda context. */
export interface AdoptedContext {
  readonly keelson: PipelineContext;
}

/**
 * Creates an execution mode for an existing Middy handler. The handler finds its `ctx` in
 * `context.keelson`, `currentContext()` works, and errors become the uniform response. Every
 * response carries `X-Request-ID`, even if a middleware answers early. For an event that is not
 * HTTP, errors are logged and rethrown.
 *
 * @throws Error if the name is not `<feature>.<entity>.<operation>`, or belongs to a handler of the
 * server; TypeError without an access rule.
 * @example
 * const scope = requestScope(server, { handler: "legacy.order.create", access: access.authenticated });
 * export const handler = middy({ executionMode: scope })
 *   .use(httpJsonBodyParser())
 *   .handler(existing);
 */
export function requestScope(server: Server, options: RequestScopeOptions): ExecutionMode {
  assertKnownOptions("requestScope", options, ["handler", "access"]);
  const { handler, access } = options;
  if (!/^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*){2}$/.test(handler))
    throw new Error(
      `requestScope: the name ${JSON.stringify(handler)} is not <feature>.<entity>.<operation>`,
    );
  if (serverInternals(server).registry.handlers.has(handler))
    throw new Error(
      `requestScope: ${handler} is declared by a feature; use lambdaHandler for it, or choose another name`,
    );
  if (!isAccessRule(access))
    throw new TypeError(
      `requestScope: \`access\` of ${handler} is ${quoted(access)}; add an access rule, for example access.authenticated`,
    );
  const invoked = prepareLambda(server, () => import("./adopted-handler.ts"));
  return lazyMode(async () => {
    const { loaded, runtime } = await invoked.open();
    return loaded.adoptedMode(runtime, { handler, access });
  });
}
