import type { Readable } from "node:stream";
import type { ReplyCookie } from "./cookies.ts";
import { assertReplyOptions } from "./reply-options.ts";

/** Options of {@link reply}. */
export interface ReplyOptions {
  /** Status from 200 to 599. Default 200, or 204 without a body. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cookies by name. */
  readonly cookies?: Readonly<Record<string, ReplyCookie>>;
}

/** Brand of a reply. It is the same for every copy of the package. */
export const replyBrand = Symbol.for("keelson.reply");

/** Result of a handler with an explicit status, headers or cookies. */
export interface Reply<Body> extends ReplyOptions {
  readonly body: Body;
  // Must be in the declaration files: without the brand, any `{ body }` would pass as a reply.
  readonly [replyBrand]: true;
}

const known: readonly string[] = ["status", "headers", "cookies"] satisfies (keyof ReplyOptions)[];

/**
 * Creates a result with an explicit status, headers or cookies. Sends a body of text or bytes
 * unchanged. A query can also stream text or bytes from a web stream, a Node `Readable`, or any
 * async iterable. These bodies need a content type; all others are sent as JSON.
 *
 * @throws TypeError for an option that a response cannot carry. The message contains the option and
 * a valid alternative.
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

/** Checks whether a body is a Node stream, readable or not. */
export function isNodeStream(body: object): body is Readable {
  return (
    "pipe" in body &&
    typeof body.pipe === "function" &&
    "on" in body &&
    typeof body.on === "function"
  );
}

/**
 * Adds an error listener to a Node stream. Without one, a stream that fails between the handler's
 * return and the first read ends the process. The reader still gets the error.
 */
export function guard(body: unknown): void {
  if (typeof body === "object" && body !== null && isNodeStream(body))
    body.on("error", () => undefined);
}
