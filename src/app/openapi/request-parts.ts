import type { BodyKind } from "../../parts/http/message.ts";
import type { ParsedRoute, Segment } from "../../parts/http/route.ts";
import { isScheme } from "../../parts/webhooks/scheme.ts";
import { formatOf } from "../../parts/webhooks/signatures.ts";
import { onceOf } from "../registry/expected-code.ts";
import type { ServerOptions } from "../registry/options.ts";
import { idempotencyKeyPattern } from "../run/write.ts";
import { type Components, type Fields, fieldsOf, withoutFields } from "./components.ts";
import type { DeclaredHandler, DeclaredOperation } from "./own-operations.ts";
import {
  bytes,
  combinations,
  isObject,
  type JsonSchema,
  mapParts,
  partsOf,
  type Schemas,
  text,
} from "./schema.ts";

/**
 * A write reads fields from query and body, but a document allows one place for each: route
 * parameters are in the path; fields of a GET, or of a DELETE with only string fields, in the
 * query; all others in the body.
 */
export function requestOf(operation: DeclaredOperation, components: Components) {
  const { route, pathNames, handler, input } = operation;
  const fields = input === undefined ? noFields : fieldsOf(input, components);
  const named = handler.webhook === undefined ? namesOf(route.segments) : [];
  // Safe cast: `named` has the same length as `pathNames`.
  const path = pathNames.map((shown, index) =>
    pathParameter(shown, fields.properties.get(named[index] as string)),
  );
  const inPath = new Set(named);
  const rest = withoutNames(fields, inPath);
  const queried = (names: Fields) => [...path, ...queryParameters(names, components)];
  const isQueried =
    handler.kind === "query" ||
    (route.method === "DELETE" && handler.body === "json" && isOfTexts(rest, components));
  if (isQueried) return { parameters: queried(rest) };
  if (input === undefined) return { parameters: path, requestBody: undeclaredBody(operation) };
  const { body: kind } = handler;
  const whole = wholeBody(kind, fields.properties.get("body"));
  // The field `body` is the whole body, so others can only be in the query.
  if (whole !== undefined) {
    const isRequired = fields.required.has("body");
    return {
      parameters: queried(withoutNames(rest, new Set(["body"]))),
      // An empty JSON string is a body of two bytes.
      requestBody: bodyOf(
        kind,
        isRequired && kind !== "value" ? notEmpty(whole) : whole,
        isRequired,
      ),
    };
  }
  const sent = withoutFields(input, inPath, components);
  const schema = isForm(kind) ? asForm(components.resolve(sent), components) : sent;
  if (isEmpty(schema)) return { parameters: path };
  const lists = kind === "form" ? listsOf(rest, components) : {};
  const requestBody = bodyOf(kind, schema, needsBody(schema, components), lists);
  return { parameters: path, requestBody };
}

/** The body if it arrives as the field `body`: text, bytes, or a JSON value. */
function wholeBody(kind: BodyKind, body: JsonSchema | undefined): JsonSchema | undefined {
  if (kind === "bytes") return bytes;
  if (kind === "text") return body ?? text;
  return kind === "value" ? (body ?? {}) : undefined;
}

function bodyOf(
  kind: BodyKind,
  schema: JsonSchema,
  required: boolean,
  encoding: JsonSchema = {},
): JsonSchema {
  const isEncoded = Object.keys(encoding).length > 0;
  const media = isEncoded ? { schema, encoding } : { schema };
  return { required, content: { [mediaTypes[kind]]: media } };
}

/** Each field is a string, or a file. Parts of `multipart` repeat the name of a list anyway. */
function isForm(kind: BodyKind): boolean {
  return kind === "form" || kind === "multipart";
}

/** Repeats a list's name for each value: clients would otherwise join them with commas. */
function listsOf({ properties }: Fields, components: Components): JsonSchema {
  const lists = [...properties].filter(([, schema]) => mayBeList(schema, components));
  return Object.fromEntries(lists.map(([name]) => [name, { style: "form", explode: true }]));
}

function mayBeList(given: JsonSchema, components: Components): boolean {
  const schema = components.resolve(given);
  const parts = combinations.flatMap((word) => partsOf(schema, word));
  return (
    [schema["type"]].flat().includes("array") || parts.some((part) => mayBeList(part, components))
  );
}

function isEmpty({ type, properties, additionalProperties }: JsonSchema): boolean {
  const isOpen = additionalProperties !== undefined && additionalProperties !== false;
  return type === "object" && !isOpen && Object.keys(Object(properties)).length === 0;
}

/** A schema that rejects an empty object, the input of a request without a body, needs one. */
function needsBody(given: JsonSchema, components: Components): boolean {
  const schema = components.resolve(given);
  const { type, required } = schema;
  const needs = (part: JsonSchema) => needsBody(part, components);
  const choices = partsOf(schema, "anyOf" in schema ? "anyOf" : "oneOf");
  return (
    (choices.length > 0 && choices.every(needs)) ||
    partsOf(schema, "allOf").some(needs) ||
    (type !== undefined && ![type].flat().includes("object")) ||
    (Array.isArray(required) && required.length > 0)
  );
}

const noFields: Fields = { properties: new Map(), required: new Set() };

const mediaTypes = {
  json: "application/json",
  value: "application/json",
  form: "application/x-www-form-urlencoded",
  multipart: "multipart/form-data",
  text: "text/plain",
  bytes: "application/octet-stream",
} as const;

function withoutNames({ properties, required }: Fields, names: ReadonlySet<string>): Fields {
  return {
    properties: new Map([...properties].filter(([name]) => !names.has(name))),
    required: new Set([...required].filter((name) => !names.has(name))),
  };
}

function pathParameter(name: string, given = text): JsonSchema {
  return { name, in: "path", required: true, schema: notEmpty(given) };
}

/** An empty path segment or body counts as missing. */
function notEmpty(schema: JsonSchema): JsonSchema {
  return schema["type"] === "string" && !Number(schema["minLength"])
    ? { ...schema, minLength: 1 }
    : schema;
}

function queryParameters({ properties, required }: Fields, components: Components): JsonSchema[] {
  return [...properties].map(([name, schema]) => ({
    name,
    in: "query",
    ...(required.has(name) && { required: true }),
    schema: asSent(schema, components),
  }));
}

/** A list has two items: in a query or form, a name that occurs once arrives as a string. */
function asSent(schema: JsonSchema, components: Components): JsonSchema {
  const resolved = components.resolve(schema);
  return resolved["type"] !== "array" || Number(resolved["minItems"]) >= 2
    ? schema
    : { ...resolved, minItems: 2 };
}

function asForm(schema: JsonSchema, components: Components): JsonSchema {
  const { properties } = schema;
  return isObject(properties)
    ? { ...schema, properties: mapParts(properties, (part) => asSent(part, components)) }
    : schema;
}

function undeclaredBody({ handler: { body } }: DeclaredOperation): JsonSchema {
  const object = { type: "object" };
  const schemas = { text, bytes, value: {}, json: object, form: object, multipart: object };
  const description = "The operation does not declare an input, so its body is not described.";
  return { description, ...bodyOf(body, schemas[body], false) };
}

function isOfTexts({ properties }: Fields, components: Components): boolean {
  return [...properties.values()].every((given) => {
    const schema = components.resolve(given);
    const choices = schema["anyOf"];
    if (Array.isArray(choices))
      return choices.some((choice: JsonSchema) => components.resolve(choice)["type"] === "string");
    const values = schema["enum"] ?? ("const" in schema ? [schema["const"]] : undefined);
    return (
      schema["type"] === "string" ||
      (Array.isArray(values) && values.every((value) => typeof value === "string"))
    );
  });
}

/** In a path, a query or a form, a field is a string. */
export function sentAsText(
  { segments }: Pick<ParsedRoute, "segments">,
  { kind, body, webhook }: Pick<DeclaredHandler, "kind" | "body" | "webhook">,
): (field: string) => boolean {
  // Only the body of a webhook is signed, so it is the whole input.
  const inPath = webhook === undefined ? namesOf(segments) : [];
  return (field) => kind === "query" || isForm(body) || inPath.includes(field);
}

export function namesOf(segments: readonly Segment[]): readonly string[] {
  return segments.flatMap((segment) => ("param" in segment ? [segment.param] : []));
}

/** The path in OpenAPI form, with the given names: `/files/{id}`. */
export function templateOf(segments: readonly Segment[], names: readonly string[]): string {
  const left = [...names];
  return `/${segments.map((segment) => ("param" in segment ? `{${left.shift()}}` : segment.static)).join("/")}`;
}

export const headerParameters: Schemas = Object.freeze({
  "X-Request-ID": {
    name: "X-Request-ID",
    in: "header",
    description:
      "Names the request in logs and answers: 1 to 128 characters of `A-Z a-z 0-9 . _ : = + / @ -`. Another is made in the place of one that is not of these, or is missing.",
    schema: text,
  },
  "Idempotency-Key": keyParameter(false),
  "Idempotency-Key.required": keyParameter(true),
});

function keyParameter(required: boolean): JsonSchema {
  return {
    name: "Idempotency-Key",
    in: "header",
    required,
    description:
      "Makes retries safe: a request with the same key gets the response of the first one and does not repeat its effects. Send a new UUID with each operation, and the same UUID with each retry.",
    schema: { type: "string", pattern: idempotencyKeyPattern },
  };
}

export function requestHeaders(handler: DeclaredHandler, options: ServerOptions): JsonSchema[] {
  const once = onceOf(handler, options);
  const key =
    once !== false && once.key === "required" ? "Idempotency-Key.required" : "Idempotency-Key";
  const shared = ["X-Request-ID", ...(once === false ? [] : [key])].map((name) => ({
    $ref: `#/components/parameters/${name}`,
  }));
  return [...shared, ...signatureHeaders(handler)];
}

function signatureHeaders({ webhook }: DeclaredHandler): JsonSchema[] {
  if (webhook === undefined || !isScheme(webhook.verify)) return [];
  return formatOf(webhook.verify).headers.map((name) => ({
    ...{ name, in: "header", required: true, schema: text },
    description: "Of the signature, with which the sender proves who it is.",
  }));
}
