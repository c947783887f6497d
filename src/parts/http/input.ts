import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type FieldError, FrameworkError, ValidationError } from "../../base/errors/errors.ts";
import { exceededBound, type JsonBounds } from "./json-bounds.ts";
import type { BodyKind, HttpRequest } from "./message.ts";

interface InputRoute {
  readonly body: BodyKind;
  readonly input?: StandardSchemaV1 | undefined;
}

export interface ReceivedBody {
  readonly bytes: Uint8Array;
  readonly form?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Adds the members of query and body to `input`, an object without a prototype. Ignores the body of
 * GET and HEAD. A text, bytes and a JSON value become the member `body`.
 * @throws ValidationError for a member of two sources, and for JSON that is not an object, unless
 * the route takes a value; FrameworkError for input that cannot be parsed.
 */
export function readInput(
  { query, method, headers }: Pick<HttpRequest, "query" | "method" | "headers">,
  { body: kind, input: schema }: InputRoute,
  input: Record<string, unknown>,
  { bytes, form }: ReceivedBody,
): Record<string, unknown> {
  refuseEncoded(headers["content-encoding"], bytes);
  const isBodiless = method === "GET" || method === "HEAD";
  if (query === "" && isBodiless) return input;
  const twice: FieldError[] = [];
  const add = (source: Readonly<Record<string, unknown>>) => {
    for (const name of Object.keys(source)) {
      if (name in input)
        twice.push({ field: shown(name), error: "is given twice: in path, query or body" });
      else input[name] = source[name];
    }
  };
  if (query !== "") add(parseForm(query, "query"));
  const body = isBodiless
    ? undefined
    : form === undefined
      ? parseBody(kind, headers["content-type"], bytes, schema !== undefined)
      : { fields: form };
  if (body !== undefined) add("fields" in body ? body.fields : { body: body.body });
  if (twice.length > 0) throw new ValidationError(twice.slice(0, maxFields));
  return input;
}

/** A compressed body would be parsed as if it were plain. */
export function refuseEncoded(header = "", bytes: Uint8Array): void {
  const encoding = header.trim().toLowerCase();
  if (bytes.byteLength === 0 || encoding === "" || encoding === "identity") return;
  const message = "The body has a Content-Encoding; send it unencoded";
  throw new FrameworkError("unsupported_media_type", message);
}

/**
 * @throws ValidationError with a dotted path for each issue, or `input` for an issue of the whole.
 */
export function validateInput(schema: StandardSchemaV1 | undefined, input: unknown): unknown {
  if (schema === undefined) return input;
  const outcome = schema["~standard"].validate(input);
  return outcome instanceof Promise ? outcome.then(accepted) : accepted(outcome);
}

const maxFields = 100;

function accepted(outcome: StandardSchemaV1.Result<unknown>): unknown {
  if (outcome.issues === undefined) return outcome.value;
  throw new ValidationError(
    outcome.issues.slice(0, maxFields).map(({ path = [], message }) => {
      const dotted = path.map((part) => String(typeof part === "object" ? part.key : part));
      return { field: shown(dotted.join(".")) || "input", error: String(message).slice(0, 500) };
    }),
  );
}

function shown(name: string): string {
  return name.slice(0, 200);
}

type ParsedBody =
  | { readonly fields: Record<string, unknown> }
  | { readonly body: unknown }
  | undefined;

const bounds: JsonBounds = { depth: 64, values: 262_144, members: 10_000 };

/**
 * Returns `undefined` for an empty body.
 *
 * @param isChecked - whether a schema will validate the value. It creates new objects, so the
 * parsed ones may keep their prototypes, whose removal takes as long as parsing.
 * @throws FrameworkError `unsupported_media_type`, or `malformed_request` also beyond `bounds`;
 * ValidationError for JSON that is not an object, unless `kind` is `value`.
 */
export function parseBody(
  kind: BodyKind,
  contentType: string | undefined,
  bytes: Uint8Array,
  isChecked = false,
): ParsedBody {
  // The fields of `multipart` were given, unless there are no bytes.
  if (bytes.byteLength === 0 || kind === "multipart") return undefined;
  if (kind === "bytes") return { body: bytes };
  const { type, charset } = mediaType(contentType);
  const [name, accepted] = types[kind];
  if (!accepted.test(type) || !(charset === undefined || /^utf-?8$/.test(charset)))
    throw bodyOfAnotherType(`${name} in UTF-8`);
  const text = utf8(bytes);
  if (kind === "text") return { body: text };
  if (kind === "form") return { fields: parseForm(text, "body") };
  const value = json(text, isChecked);
  if (kind === "value") return { body: value };
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return { fields: value as Record<string, unknown> }; // safe: a JSON object
  throw new ValidationError([{ field: "body", error: "must be an object" }]);
}

const jsonTypes = /^application\/(?:json|[^;]+\+json)$/;
const types = {
  json: ["application/json", jsonTypes],
  value: ["application/json", jsonTypes],
  form: ["application/x-www-form-urlencoded", /^application\/x-www-form-urlencoded$/],
  text: ["text/*", /^text\//],
} as const;

function mediaType(contentType = "") {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  const charset = parameters
    .map((parameter) => /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  return { type: type.trim(), charset };
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw malformed("The body is not valid UTF-8");
  }
}

function json(text: string, isChecked: boolean): unknown {
  // A text no longer than the depth bound cannot exceed any bound.
  const exceeded = text.length > bounds.depth ? exceededBound(text, bounds) : undefined;
  if (exceeded !== undefined) throw malformed(`The body has ${beyond[exceeded]}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed("The body is not valid JSON");
  }
  if (!isChecked) dropPrototypes(value);
  return value;
}

const beyond: Readonly<Record<keyof JsonBounds, string>> = {
  depth: `more than ${bounds.depth} levels`,
  values: `more than ${bounds.values} values`,
  members: `an object of more than ${bounds.members} members`,
};

/**
 * Makes `__proto__` an ordinary name in parsed JSON, in place: a reviver would be called for every
 * element. `exceededBound` has limited the depth.
 */
function dropPrototypes(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const element of value) dropPrototypes(element);
    return;
  }
  Object.setPrototypeOf(value, null);
  // Without a prototype, there are only own members. Safe: any member may be read.
  for (const name in value) dropPrototypes((value as Record<string, unknown>)[name]);
}

const maxPairs = 1_000;

/**
 * Returns an object without a prototype, with an array for a repeated name. @throws FrameworkError
 * `malformed_request` for wrong percent-encoding, or over 1,000 pairs.
 */
export function parseForm(
  text: string,
  where: "query" | "body",
): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = Object.create(null);
  const pairs = text.split("&", maxPairs + 1);
  if (pairs.length > maxPairs) throw malformed(`The ${where} has more than ${maxPairs} parameters`);
  for (const pair of pairs) {
    if (pair === "") continue;
    const mark = pair.indexOf("=");
    const name = decoded(mark === -1 ? pair : pair.slice(0, mark), where);
    const value = mark === -1 ? "" : decoded(pair.slice(mark + 1), where);
    const present = values[name];
    if (present === undefined) values[name] = value;
    else if (typeof present === "string") values[name] = [present, value];
    else present.push(value);
  }
  return values;
}

function decoded(text: string, where: "query" | "body"): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw malformed(`The ${where} has malformed percent-encoding`);
  }
}

export function malformed(message: string): FrameworkError {
  return new FrameworkError("malformed_request", message);
}

export function bodyOfAnotherType(taken: string): FrameworkError {
  return new FrameworkError("unsupported_media_type", `The route takes ${taken}`);
}

export function bodyTooLarge(limitBytes: number): FrameworkError {
  return new FrameworkError("payload_too_large", `The body exceeds ${limitBytes} bytes`);
}
