import type { Readable } from "node:stream";
import { quoted } from "../../base/errors/quoted.ts";
import { assertCookie, type ReplyCookie } from "./cookies.ts";
import { ownHeaders } from "./own-headers.ts";

/** Options of {@link reply}. */
export interface ReplyOptions {
  /**
   * HTTP status, from 200 to 599. Default: the status that the handler declares, otherwise 200, or
   * 204 without a body.
   */
  readonly status?: number;
  /** Headers of the response. Default: only those that keelson sets. */
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

/** Includes streams that are only writable. */
export function isNodeStream(body: object): body is Readable {
  return (
    "pipe" in body &&
    typeof body.pipe === "function" &&
    "on" in body &&
    typeof body.on === "function"
  );
}

/**
 * Adds an error listener to a Node stream, because an error before its first read would end the
 * process. The reader still gets the error.
 */
export function guard(body: unknown): void {
  if (typeof body === "object" && body !== null && isNodeStream(body))
    body.on("error", () => undefined);
}

/**
 * @throws TypeError with the invalid option and a valid example, never with the value of a header
 * or cookie, which may be secret.
 */
function assertReplyOptions(options: unknown, known: readonly string[]): void {
  const given = recordOf(
    "the second argument",
    options,
    typeof options === "number" ? `{ status: ${options} }` : "{ status: 201 }",
  );
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`reply: unknown option ${quoted(unknown)}; known are ${known.join(", ")}`);
  if (given["status"] !== undefined) assertStatus(given["status"]);
  checkedHeaders(given["headers"]);
  for (const [name, cookie] of cookiesOf(given["cookies"])) assertCookie(name, cookie);
}

export function assertStatus(status: unknown): asserts status is number {
  if (typeof status !== "number" || !Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`reply: status ${quoted(status)} is not a whole number from 200 to 599`);
}

/** Returns headers with names in lower case. @throws TypeError for one that cannot be sent. */
export function checkedHeaders(given: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  if (given === undefined) return headers;
  for (const [name, value] of Object.entries(
    recordOf("headers", given, '{ "cache-control": "no-store" }'),
  )) {
    const lower = name.toLowerCase();
    const refuse = (what: string) => new TypeError(`reply: header ${what}`);
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower))
      throw refuse(`${quoted(name)} has no valid name`);
    if (ownHeaders.includes(lower)) {
      const instead = lower === "set-cookie" ? ", and use `cookies`" : "";
      throw refuse(`${name} is set by keelson; leave it out${instead}`);
    }
    if (typeof value !== "string")
      throw refuse(`${name} is ${kindOf(value)}; give it text, or leave it out`);
    assertHeaderValue(name, value);
    headers[lower] = value;
  }
  return headers;
}

export function assertHeaderValue(name: string, value: string): void {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
    throw new TypeError(
      `reply: header ${name} has a character that a header cannot carry; encode it`,
    );
}

export function cookiesOf(given: unknown): [name: string, cookie: unknown][] {
  return given === undefined
    ? []
    : Object.entries(recordOf("cookies", given, '{ a: { value: "1" } }'));
}

/** @throws TypeError also for lists, `Headers`, maps and promises, whose entries have no names. */
function recordOf(
  what: string,
  given: unknown,
  example: string,
): Readonly<Record<string, unknown>> {
  const refuse = (fix: string) => new TypeError(`reply: ${what} is ${kindOf(given)}; ${fix}`);
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw refuse(`pass an object like ${example}`);
  if (Symbol.iterator in given) throw refuse(`pass Object.fromEntries(${what})`);
  if ("then" in given) throw refuse("await it");
  return given as Readonly<Record<string, unknown>>; // safe: any member of an object may be read
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return `of type ${typeof value === "object" ? Object.prototype.toString.call(value).slice(8, -1) : typeof value}`;
}
