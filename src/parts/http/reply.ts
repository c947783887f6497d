import type { Readable } from "node:stream";
import type { ReplyCookie } from "./cookies.ts";
import { assertReplyOptions } from "./reply-options.ts";

/** Options of {@link reply}. */
export interface ReplyOptions {
  /**
   * HTTP status, from 200 to 599. Default: the status that the handler declares, otherwise 200, or
   * 204 without a body.
   */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cookies by name. */
  readonly cookies?: Readonly<Record<string, ReplyCookie>>;
}

/** Symbol that marks replies, the same in every copy of the package. */
export const replyBrand = Symbol.for("keelson.reply");

/** Result of a handler with an explicit status, headers or cookies. */
export interface Reply<Body> extends ReplyOptions {
  readonly body: Body;
  // Must be in the declaration files: otherwise any `{ body }` would type-check as a reply.
  readonly [replyBrand]: true;
}

const known: readonly string[] = ["status", "headers", "cookies"] satisfies (keyof ReplyOptions)[];

/**
 * Creates a handler's result with an explicit status, headers or cookies. Text and bytes are sent
 * unchanged. A query can also stream text or bytes from a web stream, a Node `Readable`, or any
 * async iterable. Text, bytes and streams need a `content-type` header. Any other body is sent as
 * JSON.
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

/** Whether a body is a Node stream, including one that is only writable. */
export function isNodeStream(body: object): body is Readable {
  return (
    "pipe" in body &&
    typeof body.pipe === "function" &&
    "on" in body &&
    typeof body.on === "function"
  );
}

/**
 * Adds an error listener if the body is a Node stream. Otherwise an error between the handler's
 * return and the first read would end the process. The code that reads the stream still gets the
 * error.
 */
export function guard(body: unknown): void {
  if (typeof body === "object" && body !== null && isNodeStream(body))
    body.on("error", () => undefined);
}
