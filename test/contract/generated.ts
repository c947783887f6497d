import fc from "fast-check";
import type { JsonSchema } from "../../src/app/openapi/schema.ts";

/** A parameter, as a document has it. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly schema: JsonSchema;
}

/** An operation, as a document has it. */
export interface Operation {
  readonly operationId: string;
  readonly path: string;
  readonly method: string;
  readonly parameters: readonly Parameter[];
  readonly body:
    | { readonly type: string; readonly required: boolean; readonly schema: JsonSchema }
    | undefined;
}

/** What a request of an operation is made of: parameters by name, and the value that its body says. */
export interface GeneratedRequest {
  readonly path: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly header: Readonly<Record<string, unknown>>;
  /** `undefined`: there is none. */
  readonly body: unknown;
}

/** The operations of a document. */
export function operationsOf(document: JsonSchema): Operation[] {
  // Safe, here and below: the document is one of OpenAPI, which the validators say.
  const paths = document["paths"] as Readonly<
    Record<string, Readonly<Record<string, Record<string, unknown>>>>
  >;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const given = operation["parameters"] as readonly JsonSchema[];
      const body = operation["requestBody"] as
        | { required: boolean; content: Record<string, { schema: JsonSchema }> }
        | undefined;
      const [content] = Object.entries(body?.content ?? {});
      return {
        operationId: String(operation["operationId"]),
        path,
        method: method.toUpperCase(),
        parameters: given.map((parameter) => referred(parameter, document) as unknown as Parameter),
        body: body &&
          content && { type: content[0], required: body.required, schema: content[1].schema },
      };
    }),
  );
}

/** Requests that a document allows. */
export function allowedRequests(
  { parameters, body }: Operation,
  document: JsonSchema,
): fc.Arbitrary<GeneratedRequest> {
  const of = (place: Parameter["in"]) =>
    fc.record(
      Object.fromEntries(
        parameters
          .filter((its) => its.in === place)
          .map(({ name, schema }) => [name, valuesOf(schema, document)]),
      ),
      {
        requiredKeys: parameters
          .filter((its) => its.in === place && its.required === true)
          .map(({ name }) => name),
      },
    );
  const values = body === undefined ? fc.constant(undefined) : valuesOf(body.schema, document);
  return fc.record({
    // A dot alone is a step in a path, for clients and servers alike.
    path: of("path").filter((path) =>
      Object.values(path).every((value) => !/^\.{0,2}$/.test(String(value))),
    ),
    query: of("query"),
    header: of("header"),
    body: body?.required === true ? values : fc.option(values, { nil: undefined }),
  });
}

/** Values that a schema takes, of the keywords that documents of tests use. @throws Error for others. */
function valuesOf(given: JsonSchema, document: JsonSchema, depth = 0): fc.Arbitrary<unknown> {
  const schema = referred(given, document);
  const inner = (part: unknown) => valuesOf(part as JsonSchema, document, depth + 1); // safe: what a keyword holds
  const { type, allOf } = schema;
  const choices = schema["anyOf"] ?? schema["oneOf"];
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"]);
  if (Array.isArray(choices)) return fc.oneof(...choices.map(inner));
  if (Array.isArray(allOf))
    return fc.tuple(...allOf.map(inner)).map((parts) => Object.assign({}, ...parts));
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => inner({ ...schema, type: one })));
  switch (type) {
    case "null":
      return fc.constant(null);
    case "string":
      return textsOf(schema);
    case "integer":
      return fc.integer(boundsOf(schema));
    case "number":
      return fc.double({
        ...boundsOf(schema),
        minExcluded: "exclusiveMinimum" in schema,
        noNaN: true,
        noDefaultInfinity: true,
      });
    case "boolean":
      return fc.boolean();
    case "array": {
      const { minItems: minLength = 0, maxItems = 5 } = schema as {
        minItems?: number;
        maxItems?: number;
      };
      if (depth > 6 && minLength === 0) return fc.constant([]); // of a schema that has itself inside
      const maxLength = Math.min(maxItems, Math.max(minLength, 5 - depth));
      return fc.array(inner(schema["items"] ?? {}), { minLength, maxLength });
    }
    case "object": {
      const members = Object.entries(
        (schema["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>,
      );
      const requiredKeys = (schema["required"] ?? []) as string[];
      return fc.record(Object.fromEntries(members.map(([name, part]) => [name, inner(part)])), {
        requiredKeys,
      });
    }
    case undefined:
      return fc.jsonValue({ maxDepth: 2 });
    default:
      throw new Error(`nothing is generated of ${JSON.stringify(schema)}`);
  }
}

function boundsOf(schema: JsonSchema): { min?: number; max?: number } {
  const { minimum = schema["exclusiveMinimum"], maximum: max } = schema as {
    minimum?: number;
    maximum?: number;
  };
  return {
    ...(minimum === undefined ? {} : { min: Number(minimum) }),
    ...(max === undefined ? {} : { max }),
  };
}

function textsOf({
  pattern,
  format,
  minLength = 0,
  maxLength = 40,
}: JsonSchema): fc.Arbitrary<string> {
  if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern));
  if (format === "date-time") {
    const [min, max] = [new Date("2000-01-01"), new Date("2100-01-01")];
    return fc.date({ noInvalidDate: true, min, max }).map((date) => date.toISOString());
  }
  const unit = format === "binary" ? "binary-ascii" : "grapheme-ascii";
  return fc.string({
    unit,
    minLength: Number(minLength),
    maxLength: Math.min(Number(maxLength), 40),
  });
}

/** What a reference refers to. */
export function referred(given: JsonSchema, document: JsonSchema): JsonSchema {
  const { $ref } = given;
  if (typeof $ref !== "string") return given;
  const found = $ref
    .slice(2)
    .split("/")
    .reduce((part: unknown, name) => (part as Record<string, unknown>)[name], document); // safe: validators follow each
  return referred(found as JsonSchema, document);
}
