import { quoted } from "../../base/errors/quoted.ts";
import { assertCookie } from "./cookies.ts";
import { ownHeaders } from "./message.ts";

/**
 * Checks the options of a reply, which may come from plain JavaScript.
 *
 * @throws TypeError with the invalid option and a valid example, never with the value of a header
 * or cookie, which may be secret.
 */
export function assertReplyOptions(options: unknown, known: readonly string[]): void {
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

/** @throws TypeError unless `status` is a whole number from 200 to 599. */
export function assertStatus(status: unknown): asserts status is number {
  if (typeof status !== "number" || !Number.isInteger(status) || status < 200 || status > 599)
    throw new TypeError(`reply: status ${quoted(status)} is not a whole number from 200 to 599`);
}

/**
 * Returns the headers of a reply, with names in lower case.
 * @throws TypeError for a header that a response cannot carry.
 */
export function checkedHeaders(given: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  if (given === undefined) return headers;
  for (const [name, value] of Object.entries(
    recordOf("headers", given, '{ "cache-control": "no-store" }'),
  )) {
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(lower))
      throw new TypeError(`reply: header ${quoted(name)} has no valid name`);
    if (ownHeaders.includes(lower))
      throw new TypeError(
        `reply: header ${name} is set by keelson; leave it out${lower === "set-cookie" ? ", and use `cookies`" : ""}`,
      );
    if (typeof value !== "string")
      throw new TypeError(
        `reply: header ${name} is ${kindOf(value)}; give it text, or leave it out`,
      );
    assertHeaderValue(name, value);
    headers[lower] = value;
  }
  return headers;
}

/** @throws TypeError for a character that a header cannot contain, such as a line break. */
export function assertHeaderValue(name: string, value: string): void {
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
    throw new TypeError(
      `reply: header ${name} has a character that a header cannot carry; encode it`,
    );
}

/** Returns the cookies of a reply. @throws TypeError unless they are an object. */
export function cookiesOf(given: unknown): [name: string, cookie: unknown][] {
  return given === undefined
    ? []
    : Object.entries(recordOf("cookies", given, '{ a: { value: "1" } }'));
}

/**
 * Returns `given` as a record. @throws TypeError for other values, including lists, `Headers`, maps
 * and promises: reading these by name would silently lose their entries.
 */
function recordOf(
  what: string,
  given: unknown,
  example: string,
): Readonly<Record<string, unknown>> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`reply: ${what} is ${kindOf(given)}; pass an object like ${example}`);
  }
  if (Symbol.iterator in given)
    throw new TypeError(`reply: ${what} is ${kindOf(given)}; pass Object.fromEntries(${what})`);
  if ("then" in given) throw new TypeError(`reply: ${what} is ${kindOf(given)}; await it`);
  return given as Readonly<Record<string, unknown>>; // safe: any member of an object may be read
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return `of type ${typeof value === "object" ? Object.prototype.toString.call(value).slice(8, -1) : typeof value}`;
}
