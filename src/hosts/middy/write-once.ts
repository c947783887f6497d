import type { HandlerDeclaration } from "../../app/handlers/handler.ts";
import { assertKnownOptions } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { areReplayHeaders } from "../../parts/http/own-headers.ts";
import type { OnceOptions } from "../../parts/once/once-by.ts";
import { isOnce, onceForms } from "../../parts/once/once-by.ts";
import type { Middleware, MiddyHook } from "../lambda-http/lazy-mode.ts";

/** Options of {@link writeOnce}. */
export interface WriteOnceOptions {
  /**
   * Options that override the server's `once`; `false` turns deduplication off. Default: the server's
   * `once`.
   */
  readonly once?: OnceOptions | false;
  /**
   * `encrypted` encrypts the stored response with the key ring. Default: it is stored unencrypted.
   */
  readonly replay?: "encrypted";
  /**
   * Headers that a retry receives in addition to `content-type`, `location`, `etag`, `link` and
   * `cache-control`.
   */
  readonly replayHeaders?: readonly string[];
}

export type ClaimDescription = Pick<HandlerDeclaration, "once" | "replay" | "replayHeaders">;

const described = Symbol.for("keelson.writeOnce");

/**
 * Creates a middleware that deduplicates a handler: a retry receives the first response
 * (specification 6.6). The middleware only carries the options; `requestScope` claims the write,
 * around all middlewares.
 *
 * @throws TypeError for invalid options. Without `requestScope`, the first request fails before the
 * handler runs.
 * @example
 * const scope = requestScope(server, { handler: "legacy.order.create", access: access.authenticated });
 * export const handler = middy({ executionMode: scope }).use(writeOnce()).handler(existing);
 */
export function writeOnce(options: WriteOnceOptions = {}): Middleware {
  assertKnownOptions("writeOnce", options, ["once", "replay", "replayHeaders"]);
  const { once, replay, replayHeaders = [] } = options;
  if (once !== undefined && !isOnce(once))
    throw new TypeError(`writeOnce: \`once\` is ${onceForms}`);
  if (replay !== undefined && replay !== "encrypted")
    throw new TypeError(`writeOnce: replay is ${quoted(replay)}; use "encrypted", or omit it`);
  if (!areReplayHeaders(replayHeaders))
    throw new TypeError(
      `writeOnce: replayHeaders is ${quoted(replayHeaders)}; list headers that a response can set, without Set-Cookie`,
    );
  const names = replayHeaders.map((name) => name.toLowerCase());
  const before = () => {
    // `requestScope` reads the description and removes the middleware, so this never runs.
    throw new Error(
      "writeOnce() claims nothing by itself: give middy({ executionMode: requestScope(server, { handler, access }) }), or the write could happen twice",
    );
  };
  const description: ClaimDescription = { once, replay, replayHeaders: names };
  return { before: Object.assign(before, { [described]: description }) };
}

/** Returns the description that `writeOnce` left among the hooks, if any, and all other hooks. */
export function takeDescription(befores: readonly MiddyHook[]) {
  // Safe: only `writeOnce` sets this property.
  const descriptionOf = (before: MiddyHook) =>
    (before as { readonly [described]?: ClaimDescription })[described];
  return {
    description: befores.map(descriptionOf).find((found) => found !== undefined),
    befores: befores.filter((before) => descriptionOf(before) === undefined),
  };
}
