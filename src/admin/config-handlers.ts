import type { HandlerDeclaration } from "../app/handler.ts";
import type { Runtime } from "../app/runtime.ts";
import { commitChange, resetting, setting, undoing } from "../config/change.ts";
import { configHistory } from "../config/history.ts";
import { explainConfig, listConfig } from "../config/look-up.ts";
import type { TargetKey } from "../config/target.ts";
import type { PipelineContext, RequestView } from "../context/pipeline-context.ts";
import { NotFoundError, ValidationError } from "../errors/errors.ts";
import { access } from "../identity/access.ts";
import { type ConfigInput, configInput } from "./config-input.ts";

const target = ["scope", "tenantId", "userId"] as const;
const change = [...target, "reason", "expectedVersion"] as const;

/**
 * The operators' API: the configuration keys of a server over HTTP. Every route takes a signed-in
 * caller; the rules of each key decide the rest.
 */
export function configHandlers(runtime: Runtime): readonly HandlerDeclaration[] {
  const { configKeys } = runtime.server.registry;
  const onKey =
    (allowed: readonly string[], run: (ctx: PipelineContext, key: TargetKey, input: ConfigInput) => Promise<unknown>) =>
    (ctx: PipelineContext, given: unknown) => {
      const { key: id = "", ...input } = configInput(["key", ...allowed], given);
      const key = configKeys.get(id);
      if (key === undefined) throw new NotFoundError("config key", id.slice(0, 256));
      return run(ctx, key, input);
    };
  return [
    declare("config.list", "GET /config", async (ctx, given) => ({
      items: await listConfig(ctx, [...configKeys.values()], configInput(target, given)),
    })),
    declare(
      "config.explain",
      "GET /config/:key",
      onKey(target, (ctx, key, input) => explainConfig(ctx, key, input)),
    ),
    {
      ...declare(
        "config.set",
        "PUT /config/:key",
        onKey(["value", "expiresAt", ...change], (ctx, key, { value, ...input }) => {
          if (value !== undefined) assertInBody(ctx);
          return commitChange(ctx, key, setting(key, value, input));
        }),
      ),
      // A fingerprint is no place for a secret: one of few possible values is found by trying them all.
      isClaimable: (input) => configKeys.get(String((input as ConfigInput).key))?.definition.encrypted !== true,
    },
    declare(
      "config.reset",
      "DELETE /config/:key",
      onKey(change, (ctx, key, input) => commitChange(ctx, key, resetting(input))),
    ),
    declare(
      "config.history",
      "GET /config/:key/history",
      onKey([...target, "before", "limit"], (ctx, key, input) => configHistory(ctx, key, input)),
    ),
    declare(
      "config.undo",
      "POST /config/:key/undo",
      onKey([...change, "version"], (ctx, key, input) => commitChange(ctx, key, undoing(key, input))),
    ),
  ];
}

/** URLs are logged on their way: a value has to come in the body. */
function assertInBody({ request }: PipelineContext): void {
  const { rawBody } = request as RequestView; // safe: these handlers are called by their routes only
  const body: unknown = rawBody.length === 0 ? {} : JSON.parse(Buffer.from(rawBody).toString());
  if (typeof body === "object" && body !== null && Object.hasOwn(body, "value")) return;
  throw new ValidationError([{ field: "value", error: "has to be in the body" }]);
}

function declare(name: string, route: string, run: HandlerDeclaration["run"]): HandlerDeclaration {
  return {
    kind: route.startsWith("GET ") ? "query" : "write",
    feature: "keelson",
    name: `keelson.${name}`,
    input: undefined,
    output: undefined,
    route,
    access: access.authenticated,
    body: "json",
    run,
  };
}
