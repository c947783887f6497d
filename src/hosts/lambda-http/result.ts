import type { Readable } from "node:stream";
import type { LambdaAnswer } from "./codec.ts";

/**
 * Reads the result of a handler or a middleware, in any shape. Accepts everything that gateways
 * accept, including `null` for absent members and a status as a string, and also an object or bytes
 * as `body`, which gateways reject. A result without a `statusCode` becomes the body of a 200
 * response.
 *
 * @throws TypeError for a result that is not a valid response; the message names the part and the
 * fix.
 */
export function readResult(result: unknown): LambdaAnswer {
  const { statusCode, headers, multiValueHeaders, cookies, body, isBase64Encoded }: Members =
    Object(jsonValue(result));
  if (statusCode === undefined || statusCode === null) {
    const text = typeof result === "string" ? result : jsonOf(result, "result");
    return { statusCode: 200, headers: { "content-type": jsonType }, cookies: [], body: text };
  }
  const read = resultHeaders(headers, multiValueHeaders, cookies);
  return {
    statusCode: statusOf(statusCode),
    ...read,
    ...contentOf(jsonValue(body), isBase64Encoded, read.headers),
  };
}

const jsonType = "application/json";

type Members = Readonly<Record<string, unknown>>;

function statusOf(given: unknown): number {
  const status = typeof given === "string" && /^\d{3}$/.test(given) ? Number(given) : given;
  if (typeof status === "number" && Number.isInteger(status) && status >= 200 && status <= 599)
    return status;
  throw new TypeError(
    `the result's statusCode is ${shown(given)}; give a whole number from 200 to 599`,
  );
}

/**
 * Names become lower case, and values become strings; `null` and values that JSON omits are left
 * out. `multiValueHeaders` overrides `headers`. All cookies are kept, from whatever member.
 *
 * @throws TypeError if the headers are not an object, or a value is an object.
 */
function resultHeaders(single: unknown, multiValueHeaders: unknown, cookies: unknown) {
  const headers: Record<string, string> = {};
  const set = textsOf(cookies, "cookies");
  for (const [name, value] of [
    ...entriesOf(single, "headers"),
    ...entriesOf(multiValueHeaders, "multiValueHeaders"),
  ]) {
    const lower = name.toLowerCase();
    const texts = textsOf(value, `header ${name.slice(0, 100)}`);
    if (lower === "set-cookie") set.push(...texts);
    else if (texts.length > 0) headers[lower] = texts.join(", ");
  }
  return { headers, cookies: [...new Set(set)] };
}

function entriesOf(given: unknown, member: string): [string, unknown][] {
  if (given === undefined || given === null) return [];
  if (typeof given === "object" && !Array.isArray(given)) return Object.entries(given);
  throw new TypeError(`the result's ${member} are not an object; give values by name`);
}

function textsOf(value: unknown, what: string): string[] {
  return [value].flat().flatMap((one) => {
    const given = jsonValue(one);
    if (given === undefined || given === null) return [];
    if (typeof given !== "object") return [String(given)];
    throw new TypeError(`an object is among the values of the result's ${what}; give text`);
  });
}

function contentOf(
  body: unknown,
  isBase64Encoded: unknown,
  headers: Record<string, string>,
): Pick<LambdaAnswer, "body" | "isBase64Encoded"> {
  if (body === undefined || body === null) return { body: undefined };
  if (typeof body === "string") {
    const isAbsent = isBase64Encoded === undefined || isBase64Encoded === null;
    const isTrue = isBase64Encoded === true || isBase64Encoded === "true";
    return { body, isBase64Encoded: isAbsent ? undefined : isTrue };
  }
  if (body instanceof Uint8Array) return { body: base64Of(body), isBase64Encoded: true };
  if (typeof body !== "object") return { body: String(body) };
  if (isStream(body)) throw new TypeError("the result's body is a stream; give the whole body");
  headers["content-type"] ??= jsonType;
  return { body: jsonOf(body, "result's body") };
}

export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Whether a body is a Node or web stream: it has methods, which plain data cannot have. */
function isStream(body: object): boolean {
  const { pipe, getReader }: Members = Object(body);
  return typeof pipe === "function" || typeof getReader === "function";
}

/** Returns a body that is a stream as a web stream; `undefined` for any other. */
export function webStreamOf(body: unknown): ReadableStream<Uint8Array> | undefined {
  if (typeof body !== "object" || body === null || !isStream(body)) return undefined;
  const { toWeb } = process.getBuiltinModule("node:stream").Readable;
  // Safe: each has the methods of its kind.
  return "getReader" in body
    ? (body as ReadableStream<Uint8Array>)
    : (toWeb(body as Readable) as ReadableStream<Uint8Array>);
}

function jsonOf(value: unknown, what: string): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new TypeError(`the ${what} cannot be written as JSON; give text, or plain data`, {
      cause: error,
    });
  }
}

function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string"
    ? JSON.stringify(value.slice(0, 100))
    : `a value of type ${typeof value}`;
}

/**
 * Converts a value as Lambda's JSON serialization does: calls `toJSON`, such as of a date, and
 * drops functions and symbols. Bytes stay bytes.
 */
function jsonValue(value: unknown): unknown {
  const { toJSON }: Members = typeof value === "object" ? Object(value) : {};
  const given =
    value instanceof Uint8Array || typeof toJSON !== "function" ? value : toJSON.call(value);
  return typeof given === "function" || typeof given === "symbol" ? undefined : given;
}

/**
 * Corrects the `content-length` after a middleware has changed the body, except for HEAD and 304,
 * whose `content-length` describes a body that is not sent.
 */
export function measured(answer: LambdaAnswer, method: string): LambdaAnswer {
  const { statusCode, headers, body, isBase64Encoded } = answer;
  const { "content-length": length, ...others } = headers;
  if (length === undefined || method === "HEAD" || statusCode === 304) return answer;
  if (body === undefined) return { ...answer, headers: others };
  headers["content-length"] = String(
    Buffer.from(body, isBase64Encoded === true ? "base64" : "utf8").byteLength,
  );
  return answer;
}
