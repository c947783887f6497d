import { errorCodes } from "../../base/errors/codes.ts";
import { type AccessRule, needsIdentity } from "../../base/identity/access.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { isExpected } from "../registry/expected-code.ts";
import { headersOf } from "./answers.ts";
import type { DeclaredOperation } from "./own-operations.ts";
import type { JsonSchema, Schemas } from "./schema.ts";

export type ErrorAnswers = Map<string, JsonSchema>;

export const errorSchemas: Schemas = Object.freeze({
  Error: {
    type: "object",
    description: "What every error answers with.",
    properties: {
      error: { type: "string", description: "The code, for programs." },
      message: { type: "string", description: "What went wrong, for people." },
      requestId: { type: "string", description: "The ID of the request, as logs have it." },
      fields: {
        type: "array",
        description: "Of `validation_error`: what does not fit, and where.",
        items: {
          type: "object",
          properties: { field: { type: "string" }, error: { type: "string" } },
          required: ["field", "error"],
        },
      },
    },
    required: ["error", "message", "requestId"],
  },
  Problem: {
    description: "The same as RFC 9457 has it, for who accepts `application/problem+json`.",
    allOf: [
      { $ref: "#/components/schemas/Error" },
      {
        type: "object",
        properties: {
          type: { type: "string", format: "uri-reference" },
          title: { type: "string" },
          status: { type: "integer" },
          detail: { type: "string" },
        },
        required: ["type", "title", "status", "detail"],
      },
    ],
  },
});

/** Errors that keelson's own handlers throw only if they declare them. */
const ofApplications: readonly string[] = ["not_found", "validation_error", "unknown_outcome"];

/**
 * Codes that any status can have: parser errors of a container, and errors thrown with only a
 * status.
 */
const ofAnyStatus: readonly string[] = ["malformed_request", "pipeline_error"];

/** Returns the error responses by status. `default` covers errors without a fixed status. */
export function errorsOf(
  operation: DeclaredOperation,
  server: DeclaredServer,
  shared: ErrorAnswers,
): Schemas {
  const codes = codesOf(operation, server);
  const byStatus = Map.groupBy(
    [...codes.keys()].toSorted((one, other) => placeOf(one) - placeOf(other)),
    (code) => codes.get(code),
  );
  const isOfApplication = operation.own === undefined;
  const answers = [...byStatus].map(([status, found]): [string, JsonSchema] => {
    const unforeseen = isOfApplication || status === 503 ? ["pipeline_error"] : [];
    const all = [...new Set([...found, ...unforeseen])];
    const also = operation.own?.answers[Number(status)];
    const name = also === undefined ? nameOf(found, isOfApplication) : undefined;
    return [String(status), share(shared, name, answerOf(all, Number(status), also))];
  });
  return Object.fromEntries([
    ...answers.toSorted(([one], [other]) => Number(one) - Number(other)),
    ["default", share(shared, "OtherError", answerOf(ofAnyStatus, undefined))],
  ]);
}

function codesOf(
  { handler, own }: DeclaredOperation,
  server: DeclaredServer,
): ReadonlyMap<string, number> {
  // Safe cast: boot refuses a route without an access rule.
  const asksWho = needsIdentity(handler.access as AccessRule);
  const isGiven = (code: string) =>
    own === undefined || (code === "unauthenticated" ? asksWho : !ofApplications.includes(code));
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

function placeOf(code: string): number {
  const at = table.indexOf(code);
  return at === -1 ? table.length : at;
}

const table: readonly string[] = Object.keys(errorCodes);

/**
 * Returns the name of a shared response: `NotFound`, or `Own.NotFound` for keelson's own
 * operations, which never throw errors with only a status. `undefined` if any code is an
 * application's.
 */
function nameOf(codes: readonly string[], isOfApplication: boolean): string | undefined {
  if (!codes.every((code) => table.includes(code))) return undefined;
  const words = codes.map((code) =>
    code.replaceAll(/(?:^|_)(.)/g, (_whole, letter: string) => letter.toUpperCase()),
  );
  return `${isOfApplication ? "" : "Own."}${words.join("Or")}`;
}

/**
 * Returns a response with error codes. `also` is the body that one of keelson's own operations
 * returns with the same status.
 */
function answerOf(
  codes: readonly string[],
  status: number | undefined,
  also?: JsonSchema,
): JsonSchema {
  const body = (name: string) => ({
    allOf: [
      { $ref: `#/components/schemas/${name}` },
      { type: "object", properties: { error: { enum: codes } }, required: ["error"] },
    ],
  });
  const retries = status === 409 || status === 429 || status === 503;
  return {
    description: codes.map((code) => `\`${code}\``).join(", "),
    headers: headersOf([
      "X-Request-ID",
      ...(status === 401 ? ["WWW-Authenticate"] : []),
      ...(retries ? ["Retry-After"] : []),
    ]),
    content: {
      "application/json": {
        schema: also === undefined ? body("Error") : { anyOf: [also, body("Error")] },
      },
      "application/problem+json": { schema: body("Problem") },
    },
  };
}
