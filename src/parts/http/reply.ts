import type { ReplyCookie } from "./cookies.ts";
import { guard } from "./node-stream.ts";
import { assertReplyOptions } from "./reply-options.ts";

/** Options of {@link reply}. */
export interface ReplyOptions {
  /** 200 to 599. Default 200, or 204 without a body. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** By name. */
  readonly cookies?: Readonly<Record<string, ReplyCookie>>;
}

/** What a reply has, of this copy of the package or of another. */
export const replyBrand = Symbol.for("keelson.reply");

/** A handler's answer with its own status, headers or cookies. */
export interface Reply<Body> extends ReplyOptions {
  readonly body: Body;
  // Stays in the declaration files: without the brand any `{ body }` would pass as a reply there.
  readonly [replyBrand]: true;
}

const known: readonly string[] = ["status", "headers", "cookies"] satisfies (keyof ReplyOptions)[];

/**
 * Creates an answer with its own status, headers or cookies. A body of text or bytes is sent as it is, and in a query so is one that
 * streams them: a stream of the web, a `Readable` of Node, or any async iterable. These need a content type; all else is JSON.
 *
 * @throws TypeError for an option that a response cannot carry; the message names it and what to pass instead.
 *
 * @example
 * return reply({ id }, { status: 201, headers: { location: `/files/${id}` } });
 */
export function reply<const Body>(body: Body, options: ReplyOptions = {}): Reply<Body> {
  const isReply = (options as Partial<Reply<unknown>> | null)?.[replyBrand] === true;
  assertReplyOptions(options, isReply ? [...known, "body"] : known);
  guard(body);
  return Object.freeze({ ...options, body, [replyBrand]: true as const });
}
