import { onceOf } from "../registry/expected-code.ts";
import type { ServerOptions } from "../registry/options.ts";
import type { Components } from "./components.ts";
import type { DeclaredHandler, DeclaredOperation } from "./own-operations.ts";
import { defined, isObject, type JsonSchema, partsOf, type Schemas } from "./schema.ts";

export const answerHeaders: Schemas = Object.freeze({
  "X-Request-ID": {
    description: "The ID of the request, as logs have it.",
    required: true,
    schema: { type: "string", minLength: 1, maxLength: 128 },
  },
  "Idempotent-Replayed": {
    description:
      "There where the answer is that of an earlier request with the same key, and nothing was done.",
    schema: { const: "true" },
  },
  Location: {
    description: "Where what was made, or moved, is to be found.",
    schema: { type: "string", format: "uri-reference" },
  },
  "Retry-After": {
    description: "How many seconds to wait before the request is sent again.",
    schema: { type: "string", pattern: "^\\d+$" },
  },
  "WWW-Authenticate": { description: "How to say who calls.", schema: { type: "string" } },
});

export function headersOf(names: readonly string[]): JsonSchema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export function answersOf(
  operation: DeclaredOperation,
  components: Components,
  options: ServerOptions,
): Schemas {
  const { handler, own, output, mayBeNothing } = operation;
  const headers = (status: number) => [
    "X-Request-ID",
    ...(onceOf(handler, options) !== false ? ["Idempotent-Replayed"] : []),
    ...(status === 201 || status === 202 || status >= 300 ? ["Location"] : []),
  ];
  const answer = (status: number, content: JsonSchema | undefined): [string, JsonSchema] => [
    String(status),
    defined({
      description:
        descriptions[status] ?? (status < 300 ? "Done." : "Elsewhere: `Location` says where."),
      headers: headersOf(headers(status)),
      content,
    }),
  ];
  if (own !== undefined)
    return Object.fromEntries(
      Object.entries(own.answers).map(([status, schema]) =>
        answer(Number(status), schema && json(schema)),
      ),
    );
  const content = contentOf(output, components);
  const statuses = handler.status ?? [
    ...(content === undefined ? [] : [200]),
    ...(mayBeNothing ? [204] : []),
  ];
  return Object.fromEntries(
    statuses.map((status) => answer(status, isBodiless(status) ? undefined : content)),
  );
}

/** Redirects have no body either. */
function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status >= 300;
}

function contentOf(output: JsonSchema | undefined, components: Components): JsonSchema | undefined {
  if (output === undefined)
    return { "*/*": { schema: { description: "The operation declares no output." } } };
  if (isNothing(output)) return undefined;
  const kinds = kindsOf(output, components);
  // The handler chooses the media type of a string.
  const text = { "*/*": { schema: output } };
  if (!kinds.has("text")) return json(output);
  return kinds.has("json") ? { ...json(output), ...text } : text;
}

type Kind = "text" | "json";

/** Strings are sent unchanged, other values as JSON. A schema without a type counts as JSON. */
function kindsOf(
  given: JsonSchema,
  components: Components,
  above: readonly unknown[] = [],
): ReadonlySet<Kind> {
  const { $ref } = given;
  // A recursive alternative adds no new kinds.
  if ($ref !== undefined && above.includes($ref)) return new Set();
  const schema = components.resolve(given);
  const { type } = schema;
  const values = "const" in schema ? [schema["const"]] : schema["enum"];
  const types = Array.isArray(values) ? values.map((value) => typeof value) : undefined;
  const known = type === undefined ? types : [type].flat();
  if (known !== undefined)
    return new Set(known.map((name) => (name === "string" ? "text" : "json")));
  const kinds = partsOf(schema, "anyOf" in schema ? "anyOf" : "oneOf")
    .filter((part) => !isNothing(part))
    .flatMap((part) => [...kindsOf(part, components, [...above, $ref])]);
  return new Set(kinds.length === 0 ? ["json"] : kinds);
}

/** Whether a schema describes an absent body. */
export function isNothing({ not }: JsonSchema): boolean {
  return isObject(not) && Object.keys(not).length === 0;
}

export function json(schema: JsonSchema): JsonSchema {
  return { "application/json": { schema } };
}

/**
 * Whether `output` accepts `undefined`. Its validation may throw, because it may call a service.
 */
export async function takesNothing({ output }: Pick<DeclaredHandler, "output">): Promise<boolean> {
  if (output === undefined) return true;
  try {
    return (await output["~standard"].validate(undefined)).issues === undefined;
  } catch {
    return false;
  }
}

const descriptions: Readonly<Record<number, string>> = {
  200: "Done.",
  201: "Created.",
  202: "Accepted: it is done later.",
  204: "Done, and there is nothing to say.",
  304: "What the client has is still true.",
  503: "Not ready.",
};
