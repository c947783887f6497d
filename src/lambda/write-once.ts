import type middy from "@middy/core";
import type { HandlerDeclaration } from "../declare/handler.ts";
import { isOnceBy, type OnceBy } from "../once/once-by.ts";

/** How a handler's repeats are known and answered. */
export interface WriteOnceOptions {
  /** Which ID of the client makes it happen once. Default: the server's `once.key`. */
  readonly once?: OnceBy;
  /** `encrypted`: the stored answer is sealed with the key ring. */
  readonly replay?: "encrypted";
  /** Headers that a repeat gets too, beside `content-type`, `location`, `etag`, `link` and `cache-control`. */
  readonly replayHeaders?: readonly string[];
}

/** What a claim is described with. */
export type ClaimDescription = Pick<HandlerDeclaration, "once" | "replay" | "replayHeaders">;

const described = Symbol.for("keelson.writeOnce");

/**
 * A middleware that describes the claim of a handler that changes something: sent again, it gets its first
 * answer (specification 6.6). It is `requestScope` that claims, around all middlewares.
 *
 * @throws TypeError for options that are none. Without `requestScope` the first request fails before the handler runs.
 * @example
 * middy({ executionMode: requestScope(server, { handler: "legacy.order.create" }) }).use(writeOnce()).handler(existing);
 */
export function writeOnce({ once, replay, replayHeaders = [] }: WriteOnceOptions = {}): middy.MiddlewareObj {
  if (once !== undefined && !isOnceBy(once)) throw new TypeError('writeOnce: `once` is "either", "idempotency-key" or false');
  const names = replayHeaders.map((name) => name.toLowerCase());
  const before = () => {
    // With requestScope this never runs: it takes the description, and leaves the middleware out.
    throw new Error(
      "writeOnce() claims nothing by itself: give middy({ executionMode: requestScope(server, { handler }) }), or the write could happen twice",
    );
  };
  const description: ClaimDescription = { once, replay, replayHeaders: names };
  return { before: Object.assign(before, { [described]: description }) };
}

/** The description among the middlewares, and the middlewares without it. */
export function takeDescription(befores: readonly unknown[]): {
  readonly description: ClaimDescription | undefined;
  readonly befores: unknown[];
} {
  const descriptionOf = (before: unknown) => (before as Partial<Record<typeof described, ClaimDescription>>)[described];
  return {
    description: befores.map(descriptionOf).find((found) => found !== undefined),
    befores: befores.filter((before) => descriptionOf(before) === undefined),
  };
}
