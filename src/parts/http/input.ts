import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type FieldError, FrameworkError, ValidationError } from "../../base/errors/errors.ts";
import { exceededBound, type JsonBounds } from "./json-bounds.ts";
import type { BodyKind } from "./message.ts";
import { parseForm } from "./query.ts";

/** The parts of a request that its input is read from. */
export interface InputParts {
  /** Prototype-free, and for the input alone: it becomes the input. */
  readonly params: Record<string, unknown>;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly bytes: Uint8Array;
  /** What a middleware has parsed the body to. */
  readonly form?: Readonly<Record<string, unknown>> | undefined;
  readonly kind: BodyKind;
  /** A GET and a HEAD have no body as far as their input goes. */
  readonly method: string;
  /** Whether a schema is going to read it. Default `false`. */
  readonly isChecked?: boolean;
}

/**
 * Reads the input of a request: path, query and body in one prototype-free object, which is that of the path with
 * more in it. JSON that is no object, text and bytes arrive as `body`.
 *
 * @throws ValidationError naming each field that comes from two sources; FrameworkError for a
 * query or a body that cannot be parsed.
 */
export function readInput({
  params: input,
  query,
  contentType,
  bytes,
  form,
  kind,
  method,
  isChecked,
}: InputParts): Record<string, unknown> {
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
      ? parseBody(kind, contentType, bytes, isChecked)
      : { fields: form };
  if (body !== undefined) add("fields" in body ? body.fields : { body: body.body });
  if (twice.length > 0) throw new ValidationError(twice.slice(0, maxFields));
  if (isChecked && kind === "json" && body !== undefined && "body" in body)
    noticeReading(input, body.body);
  return input;
}

/** Of inputs with JSON that is no object: that, and whether it was read. */
const wholeBodies = new WeakMap<object, { readonly body: unknown; isRead: boolean }>();

/** Only objects have names that a schema may skip: of a list that it does not look at all would be lost without a word. */
function noticeReading(input: Record<string, unknown>, body: unknown): void {
  const whole = { body, isRead: false };
  const get = () => {
    whole.isRead = true;
    return body;
  };
  Object.defineProperty(input, "body", { get, enumerable: true, configurable: true });
  wholeBodies.set(input, whole);
}

function refuseUnread(input: object, value: unknown): void {
  const whole = wholeBodies.get(input);
  if (whole === undefined) return;
  // A schema that takes anything gives its input on, and has read none of it.
  if (!whole.isRead && value !== input)
    throw new ValidationError([{ field: "body", error: "must be an object" }]);
  Object.defineProperty(input, "body", { value: whole.body, writable: true });
}

/**
 * Validates an input against a Standard Schema. Without a schema it passes as it is.
 *
 * @throws ValidationError with a dotted path for each issue; one of the whole input has the
 * field `input`, and JSON that is no object, where the schema has no field `body`, the field `body`.
 */
export function validateInput(schema: StandardSchemaV1 | undefined, input: unknown): unknown {
  if (schema === undefined) return input;
  const outcome = schema["~standard"].validate(input);
  return outcome instanceof Promise
    ? outcome.then((result) => accepted(result, input))
    : accepted(outcome, input);
}

const maxFields = 100;

function accepted(outcome: StandardSchemaV1.Result<unknown>, input: unknown): unknown {
  if (outcome.issues === undefined) {
    refuseUnread(input as object, outcome.value); // safe: a WeakMap may be asked for anything
    return outcome.value;
  }
  throw new ValidationError(
    outcome.issues.slice(0, maxFields).map(({ path = [], message }) => ({
      field:
        shown(path.map((part) => String(typeof part === "object" ? part.key : part)).join(".")) ||
        "input",
      error: String(message).slice(0, 500),
    })),
  );
}

function shown(name: string): string {
  return name.slice(0, 200);
}

/** What a body comes to: named fields, or one value that arrives as `input.body`. */
export type ParsedBody =
  | { readonly fields: Record<string, unknown> }
  | { readonly body: unknown }
  | undefined;

const bounds: JsonBounds = { depth: 64, values: 262_144, members: 10_000 };

/**
 * Parses a request body of the kind that its route takes. An empty body is no body, whatever
 * its type.
 *
 * @param isChecked - whether a schema is going to read it. What it reads it makes anew, so that objects keep their prototype
 * until then: taking it from each costs as much as parsing them did.
 * @throws FrameworkError `unsupported_media_type` for another content type, `malformed_request`
 * for what cannot be parsed, or has more than 64 levels, 262,144 values or 10,000 members of one object.
 */
export function parseBody(
  kind: BodyKind,
  contentType: string | undefined,
  bytes: Uint8Array,
  isChecked = false,
): ParsedBody {
  if (bytes.byteLength === 0) return undefined;
  if (kind === "bytes") return { body: bytes };
  const { type, charset } = mediaType(contentType);
  if (
    !accepts[kind](type) ||
    (charset !== undefined && charset !== "utf-8" && charset !== "utf8")
  ) {
    throw new FrameworkError("unsupported_media_type", `The route takes ${names[kind]} in UTF-8`);
  }
  const text = utf8(bytes);
  if (kind === "text") return { body: text };
  if (kind === "form") return { fields: parseForm(text, "body") };
  const value = json(text, isChecked);
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? { fields: value as Record<string, unknown> } // safe: an object of JSON, without a prototype
    : { body: value };
}

const names: Readonly<Record<Exclude<BodyKind, "bytes">, string>> = {
  json: "application/json",
  form: "application/x-www-form-urlencoded",
  text: "text/*",
};

const accepts: Readonly<Record<Exclude<BodyKind, "bytes">, (type: string) => boolean>> = {
  json: (type) => type === "application/json" || /^application\/[^;]+\+json$/.test(type),
  form: (type) => type === "application/x-www-form-urlencoded",
  text: (type) => type.startsWith("text/"),
};

function mediaType(contentType: string | undefined): { type: string; charset: string | undefined } {
  const [type = "", ...parameters] = (contentType ?? "").toLowerCase().split(";");
  const charset = parameters
    .map((parameter) => /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1])
    .find((found) => found !== undefined);
  return { type: type.trim(), charset };
}

function utf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new FrameworkError("malformed_request", "The body is not valid UTF-8");
  }
}

function json(text: string, isChecked: boolean): unknown {
  // A shorter text cannot be beyond any of them.
  const exceeded = text.length > bounds.depth ? exceededBound(text, bounds) : undefined;
  if (exceeded !== undefined)
    throw new FrameworkError("malformed_request", `The body has ${beyond[exceeded]}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameworkError("malformed_request", "The body is not valid JSON");
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
 * Takes the prototype from every object of a parsed body: `__proto__` is a name like any other. In place, not by a
 * reviver, which is called for each element. The depth is bounded before.
 */
function dropPrototypes(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const element of value) dropPrototypes(element);
    return;
  }
  Object.setPrototypeOf(value, null);
  // Only its own are left. Safe: it is an object, and its members are unknown.
  for (const name in value) dropPrototypes((value as Record<string, unknown>)[name]);
}

/** What is said of a body that is too large. */
export function bodyTooLarge(limitBytes: number): FrameworkError {
  return new FrameworkError("payload_too_large", `The body is over ${limitBytes} bytes`);
}
