import type { PipelineContext } from "../context/pipeline-context.ts";
import { type AccessRule, access as rules } from "../identity/access.ts";
import { type Server, serverInternals } from "../server/server.ts";
import { prepareLambda } from "./bind.ts";
import { type ExecutionMode, lazyMode } from "./lazy-mode.ts";

/** What {@link requestScope} wraps. */
export interface RequestScopeOptions {
  /** The handler's full name, `<feature>.<entity>.<operation>`: in its lines, and in its claims. */
  readonly handler: string;
  /** Who may call it. Default: everyone, and a valid token says who it is. */
  readonly access?: AccessRule;
}

/** What a handler inside {@link requestScope} finds beside Lambda's own context. */
export interface LegacyContext {
  readonly keelson: PipelineContext;
}

/**
 * An execution mode for a Middy handler that exists already: its `ctx` is `context.keelson`, its request has an ID,
 * an ambient context and a logger, errors become the uniform response, and every response carries `X-Request-ID`, also
 * where a middleware answers early. Of an event that is not HTTP errors are logged and rethrown.
 *
 * @throws Error where the name is not `<feature>.<entity>.<operation>`, or is one of the server's own handlers.
 * @example
 * export const legacy = middy({ executionMode: requestScope(server, { handler: "legacy.order.create" }) })
 *   .use(httpJsonBodyParser())
 *   .handler(existing);
 */
export function requestScope(server: Server, { handler, access = rules.everyone }: RequestScopeOptions): ExecutionMode {
  if (!/^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*){2}$/.test(handler)) {
    throw new Error(`requestScope: the name ${JSON.stringify(handler)} is not <feature>.<entity>.<operation>`);
  }
  if (serverInternals(server).registry.handlers.has(handler)) {
    throw new Error(`requestScope: ${handler} is declared by a feature; use lambdaHandler for it, or choose another name`);
  }
  const begin = prepareLambda(server, () => import("./adopted-handler.ts"));
  return lazyMode(async () => {
    const { loaded, runtime } = await begin();
    return loaded.adoptedMode(runtime, { handler, access });
  });
}
