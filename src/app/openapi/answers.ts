import { errorCodes } from "../../base/errors/error-codes.ts";
import { type AccessRule, needsIdentity } from "../../base/identity/access.ts";
import { mediaTypes } from "../../parts/http/event-stream.ts";
import { isScheme } from "../../parts/webhooks/scheme.ts";
import { formatOf } from "../../parts/webhooks/signatures.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { isExpected, onceOf } from "../registry/expected-code.ts";
import type { ServerOptions } from "../registry/options.ts";
import type { Components } from "./components.ts";
import type { DeclaredHandler, DeclaredOperation } from "./own-operations.ts";
import {
  defined,
  isObject,
  type JsonSchema,
  object,
  partsOf,
  type Schemas,
  text,
} from "./schema.ts";

export const answerHeaders: Schemas = Object.freeze({
  "X-Request-ID": {
    description: "The ID of the request, the same as in the logs.",
    required: true,
    schema: { type: "string", minLength: 1, maxLength: 128 },
  },
  "Idempotent-Replayed": {
    description:
      "Present if the response is a replay of an earlier request with the same key, and this request had no effect.",
    schema: { const: "true" },
  },
  Location: {
    description: "The location of the created or moved resource.",
    schema: { type: "string", format: "uri-reference" },
  },
  "Retry-After": {
    description: "Seconds to wait before sending the request again.",
    schema: { type: "string", pattern: "^\\d+$" },
  },
  RateLimit: {
    description:
      "The requests that each limit still admits, and the seconds until its window ends.",
    schema: text,
  },
  "RateLimit-Policy": {
    description: "The limits: the requests per window, and its length in seconds.",
    schema: text,
  },
  "WWW-Authenticate": { description: "The authentication scheme to use.", schema: text },
});

const rateHeaders: readonly string[] = ["RateLimit", "RateLimit-Policy"];

function headersOf(names: readonly string[]): JsonSchema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** Version of OpenAPI. Only 3.2 describes the items of streams. */
export type OpenApiSpec = "3.1" | "3.2";

export function answersOf(
  operation: DeclaredOperation,
  components: Components,
  { spec, ...options }: ServerOptions & { readonly spec: OpenApiSpec },
): Schemas {
  const { handler, own, output, stream, mayBeNothing, isLimited } = operation;
  const headers = (status: number) => [
    "X-Request-ID",
    ...(onceOf(handler, options) !== false ? ["Idempotent-Replayed"] : []),
    ...(status === 201 || status === 202 || status >= 300 ? ["Location"] : []),
    ...(isLimited ? rateHeaders : []),
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
  const content =
    stream === undefined || output === undefined
      ? contentOf(output, components)
      : { [mediaTypes[stream]]: itemContent(stream, output, spec) };
  const statuses = handler.status ?? [
    ...(content === undefined ? [] : [200]),
    ...(mayBeNothing ? [204] : []),
  ];
  return Object.fromEntries([
    ...statuses.map((status) => answer(status, isBodiless(status) ? undefined : content)),
    ...(handler.webhook === undefined ? [] : [answer(204, undefined)]),
    ...(greets(handler) ? [answer(200, anyContent)] : []),
  ]);
}

/** Whether a sender checks the address with a request that is not an event. */
function greets({ webhook }: DeclaredHandler): boolean {
  const verify = webhook?.verify;
  return isScheme(verify) && formatOf(verify).greeting !== undefined;
}

const anyContent: JsonSchema = {
  "*/*": { schema: { description: "The operation declares no output." } },
};

/** Events are described as OpenAPI 3.2 sees them: text fields, with JSON in `data`. */
function itemContent(
  kind: keyof typeof mediaTypes,
  item: JsonSchema,
  spec: OpenApiSpec,
): JsonSchema {
  const name = spec === "3.2" ? "itemSchema" : "x-itemSchema";
  if (kind === "jsonLines") return { [name]: item };
  const data = { ...text, contentMediaType: "application/json", contentSchema: item };
  const retry: JsonSchema = { type: "integer", minimum: 0 };
  return { [name]: object({ data, "id?": text, "event?": text, "retry?": retry }) };
}

function isBodiless(status: number): boolean {
  return status === 204 || status === 205 || status >= 300;
}

function contentOf(output: JsonSchema | undefined, components: Components): JsonSchema | undefined {
  if (output === undefined) return anyContent;
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

/** The schema of an absent body. */
export function isNothing({ not }: JsonSchema): boolean {
  return isObject(not) && Object.keys(not).length === 0;
}

export function json(schema: JsonSchema): JsonSchema {
  return { "application/json": { schema } };
}

/** The validation may throw, because it may call a service. */
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
  202: "Accepted for later processing.",
  204: "Done, without a response body.",
  304: "The client's copy is still current.",
  503: "Not ready.",
};

export type ErrorAnswers = Map<string, JsonSchema>;

/** Errors that keelson's own handlers throw only if declared. */
const ofApplications: readonly string[] = ["not_found", "validation_error", "unknown_outcome"];

/** Parser errors of a container, and errors thrown with only a status. */
const ofAnyStatus: readonly string[] = ["malformed_request", "pipeline_error"];

/** Error responses by status. `default` covers errors without a fixed status. */
export function errorsOf(
  operation: DeclaredOperation,
  server: DeclaredServer,
  shared: ErrorAnswers,
): Schemas {
  const codes = codesOf(operation, server);
  const inOrder = new Set([...table.filter((code) => codes.has(code)), ...codes.keys()]);
  const byStatus = Map.groupBy(inOrder, (code) => codes.get(code));
  // Each quota chooses the status of its refusals.
  if (isExpected("quota_exceeded", operation.handler, server))
    for (const status of new Set([...server.registry.quotas.values()].map(statusOf)))
      byStatus.set(status, [...(byStatus.get(status) ?? []), "quota_exceeded"]);
  const isOfApplication = operation.own === undefined;
  const answers = [...byStatus].map(([status, found]): [string, JsonSchema] => {
    const unforeseen = isOfApplication || status === 503 ? ["pipeline_error"] : [];
    const all = [...new Set([...found, ...unforeseen])];
    const also = operation.own?.answers[Number(status)];
    const name = also === undefined ? nameOf(found, operation) : undefined;
    return [String(status), share(shared, name, answerOf(all, Number(status), operation, also))];
  });
  return Object.fromEntries([
    ...answers.toSorted(([one], [other]) => Number(one) - Number(other)),
    [
      "default",
      share(shared, "OtherError", answerOf(ofAnyStatus, undefined, { isLimited: false })),
    ],
  ]);
}

const statusOf = ({ status }: { readonly status: number }) => status;

function codesOf(
  { handler, own }: DeclaredOperation,
  server: DeclaredServer,
): ReadonlyMap<string, number> {
  // Safe cast: boot refuses a route without an access rule.
  const asksWho = needsIdentity(handler.access as AccessRule);
  const isGiven = (code: string) =>
    code !== "quota_exceeded" &&
    (own === undefined || (code === "unauthenticated" ? asksWho : !ofApplications.includes(code)));
  const expected = Object.entries(errorCodes).filter(
    ([code]) => isExpected(code, handler, server) && isGiven(code),
  );
  return new Map([...expected, ...Object.entries({ ...own?.errors, ...handler.errors })]);
}

function share(shared: ErrorAnswers, name: string | undefined, answer: JsonSchema): JsonSchema {
  if (name === undefined) return answer;
  shared.set(name, answer);
  return { $ref: `#/components/responses/${name}` };
}

const table: readonly string[] = Object.keys(errorCodes);

/**
 * `NotFound`, or `Own.NotFound` for keelson's own operations, which never throw errors with only a
 * status; `Limited.NotFound` if rate limits apply. `undefined` if any code is an application's.
 */
function nameOf(
  codes: readonly string[],
  { own, isLimited }: Pick<DeclaredOperation, "own" | "isLimited">,
): string | undefined {
  if (!codes.every((code) => table.includes(code))) return undefined;
  const words = codes.map((code) =>
    code.replaceAll(/(?:^|_)(.)/g, (_whole, letter: string) => letter.toUpperCase()),
  );
  return `${own === undefined ? "" : "Own."}${isLimited ? "Limited." : ""}${words.join("Or")}`;
}

/** `also`: body that one of keelson's operations returns with this status. */
function answerOf(
  codes: readonly string[],
  status: number | undefined,
  { isLimited }: Pick<DeclaredOperation, "isLimited">,
  also?: JsonSchema,
): JsonSchema {
  const body = (name: string) => ({
    allOf: [{ $ref: `#/components/schemas/${name}` }, object({ error: { enum: codes } })],
  });
  const retries = status === 409 || status === 429 || status === 503;
  return {
    description: codes.map((code) => `\`${code}\``).join(", "),
    headers: headersOf([
      "X-Request-ID",
      ...(status === 401 ? ["WWW-Authenticate"] : []),
      ...(retries ? ["Retry-After"] : []),
      ...(isLimited ? rateHeaders : []),
    ]),
    content: {
      "application/json": {
        schema: also === undefined ? body("Error") : { anyOf: [also, body("Error")] },
      },
      "application/problem+json": { schema: body("Problem") },
    },
  };
}
