import { fileURLToPath } from "node:url";
import type { ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { errorSchemas } from "../../../src/app/openapi/error-schemas.ts";
import type { JsonSchema } from "../../../src/app/openapi/schema.ts";
import type { DeclaredServer } from "../../../src/app/registry/declared-server.ts";
import { isExpected } from "../../../src/app/registry/expected-code.ts";
import { serverDocument } from "../../../src/app/routes/openapi-document.ts";
import { errorCodes } from "../../../src/base/errors/error-codes.ts";
import type { Held, HeldRequest, HeldResponse } from "./hold.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** One response of a document, with its references resolved. */
interface Answer {
  readonly headers?: Readonly<Record<string, JsonSchema>>;
  /** Streams have a schema of their items only. */
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>;
}

/** One operation of a document. */
interface Operation {
  readonly method: string;
  /** Segments of its path: a string for a static one, `undefined` for a parameter. */
  readonly segments: readonly (string | undefined)[];
  readonly responses: Readonly<Record<string, JsonSchema>>;
  readonly operationId: string;
}

/** A document, as far as answers are held against it. */
interface Contract {
  readonly document: JsonSchema;
  readonly schemas: JsonSchema;
  readonly operations: readonly Operation[];
}

const contracts = new WeakMap<DeclaredServer, Promise<Contract>>();

/** The reason why a response does not match its server's document; `undefined` if it does. */
export async function disagreementOf({
  server,
  request,
  response,
}: Held): Promise<string | undefined> {
  let contract = contracts.get(server);
  if (contract === undefined) {
    contract = contractOf(server);
    contracts.set(server, contract);
  }
  // Middlewares may change a response, as long as the log shows it.
  if (request.hasMiddlewares === true)
    return response.headers["x-request-id"] === undefined ? "no header X-Request-ID" : undefined;
  const { document, schemas, operations } = await contract;
  const method = request.method === "HEAD" ? "GET" : request.method;
  const { basePath = "" } = server.options;
  const operation = operationAt(operations, method, request.path, basePath);
  const isHead = request.method === "HEAD";
  if (operation === undefined) return unroutedProblem(response, isHead, request.handler);
  const { status } = response;
  if (isUndeclaredStatus(server, request, response)) return undefined;
  const found = operation.responses[status] ?? operation.responses["default"];
  if (found === undefined) return `${operation.operationId}: no status ${status}`;
  const answer = resolved(found, document) as Answer;
  const undeclared = isUndeclared(server, request, response);
  const problem = problemOf(answer, response, {
    document,
    schemas,
    isHead,
    undeclared,
    sendsMisfits: sendsMisfits(server),
  });
  return problem && `${operation.operationId} ${status}: ${problem}`;
}

async function contractOf(server: DeclaredServer): Promise<Contract> {
  const { document } = await serverDocument(server, root);
  // Safe: the document is one of OpenAPI, which the validators of test/contract say.
  const paths = document["paths"] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses, operationId }]) => ({
      method: method.toUpperCase(),
      segments: path.split("/").map((segment) => (segment.startsWith("{") ? undefined : segment)),
      responses,
      operationId,
    })),
  );
  return {
    document,
    schemas: (document["components"] as { schemas: JsonSchema }).schemas,
    operations,
  };
}

/** As OpenAPI has it, a static segment wins over a parameter. */
function operationAt(
  operations: readonly Operation[],
  method: string,
  path: string,
  basePath: string,
): Operation | undefined {
  if (!path.startsWith(basePath)) return undefined;
  const parts = path.slice(basePath.length).split("/").map(decoded);
  const rank = ({ segments }: Operation) =>
    segments.map((segment) => (segment === undefined ? 1 : 0)).join("");
  const matching = operations.filter(
    ({ method: its, segments }) =>
      its === method &&
      segments.length === parts.length &&
      segments.every((segment, at) =>
        segment === undefined ? parts[at] !== "" : segment === parts[at],
      ),
  );
  return matching.sort((one, other) => rank(one).localeCompare(rank(other)))[0];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A response outside of all operations is an error with the uniform body, or lists the methods. */
function unroutedProblem(
  response: HeldResponse,
  isHead: boolean,
  handler: string | undefined,
): string | undefined {
  // Handlers that exist only in development are not part of the contract.
  if (handler?.startsWith("keelson.")) return undefined;
  if (handler !== undefined) return `${handler} answers, and the document has no such operation`;
  const { status } = response;
  if (status === 204)
    return response.headers["allow"] === undefined ? "204 without Allow" : undefined;
  const answer = {
    content: {
      "application/json": uniform("Error"),
      "application/problem+json": uniform("Problem"),
    },
  };
  const problem = problemOf(answer, response, {
    document: {},
    schemas: errorSchemas,
    isHead,
    undeclared: false,
    sendsMisfits: false,
  });
  return problem && `no operation, ${status}: ${problem}`;
}

const uniform = (name: string) => ({ schema: { $ref: `#/components/schemas/${name}` } });

/** Whether the handler does not declare an error with this code and status, of which keelson has warned. */
function isUndeclared(
  server: DeclaredServer,
  { handler = "" }: HeldRequest,
  { status, body }: HeldResponse,
): boolean {
  const error = errorOf(body);
  const declaration = server.registry.handlers.get(handler);
  if (status < 400 || error === undefined || declaration === undefined) return false;
  const expected = Object.entries(errorCodes).filter(([code]) =>
    isExpected(code, declaration, server),
  );
  const declared = new Map<string, number>([
    ...expected,
    ["pipeline_error", status], // of any status
    ["malformed_request", status],
    ...Object.entries({ ...declaration.errors }),
  ]);
  return status !== declared.get(error);
}

/** The code of an error's body. */
function errorOf(body: HeldResponse["body"]): string | undefined {
  if (typeof body !== "string") return undefined;
  try {
    const { error } = Object(JSON.parse(body)) as { readonly error?: unknown };
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a handler answers with a status that it does not declare, of which keelson has warned, or with an error that it has made itself. */
function isUndeclaredStatus(
  { registry }: DeclaredServer,
  { handler = "" }: HeldRequest,
  { status, body }: HeldResponse,
): boolean {
  const declaration = registry.handlers.get(handler);
  if (declaration === undefined) return false;
  return status < 400
    ? !(declaration.status ?? [200, 204]).includes(status)
    : body !== undefined && errorOf(body) === undefined;
}

/** Whether the server's options allow responses that do not match. */
function sendsMisfits({ options: { output } }: DeclaredServer): boolean {
  return output?.mismatch === "send" || output?.check === "development";
}

interface Facts {
  readonly sendsMisfits: boolean;
  readonly document: JsonSchema;
  readonly schemas: JsonSchema;
  readonly isHead: boolean;
  readonly undeclared: boolean;
}

function problemOf(
  { headers = {}, content }: Answer,
  { status, headers: sent, body }: HeldResponse,
  facts: Facts,
) {
  for (const [name, given] of Object.entries(headers)) {
    const { required, schema } = resolved(given, facts.document) as {
      required?: boolean;
      schema: JsonSchema;
    };
    const value = sent[name.toLowerCase()];
    if (value === undefined && required === true) return `no header ${name}`;
    const misfit = value === undefined ? undefined : misfitOf(value, schema, facts.schemas);
    if (misfit !== undefined) return `header ${name}: ${misfit}`;
  }
  if (content === undefined)
    return body === undefined
      ? undefined
      : `a body, of ${sent["content-type"]}, and the document has none`;
  if (body === undefined) return facts.isHead || status === 304 ? undefined : "no body";
  const type = sent["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
  const said = content[type] ?? content["*/*"];
  if (said === undefined) return `content type ${type}`;
  if (typeof body !== "string" && !(body instanceof Uint8Array)) return undefined; // a stream is its reader's
  const isJson = type === "application/json" || type.endsWith("+json");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  let value: unknown = text;
  try {
    if (isJson) value = JSON.parse(text);
  } catch {
    return "a body that is not JSON";
  }
  if (status < 400 && facts.sendsMisfits) return undefined;
  const schema = facts.undeclared
    ? uniform(type === "application/json" ? "Error" : "Problem").schema
    : said.schema;
  if (schema === undefined) return undefined; // a stream, whole
  const misfit = misfitOf(value, schema, facts.schemas);
  return misfit && `body ${misfit}: ${text.slice(0, 300)}`;
}

function resolved(given: JsonSchema, document: JsonSchema): unknown {
  const { $ref } = given;
  if (typeof $ref !== "string") return given;
  return $ref
    .slice(2)
    .split("/")
    .reduce((part: unknown, name) => (part as Record<string, unknown>)[name], document); // safe: validators follow each reference
}

/** The mismatch of a value and a schema of a document; `undefined` if it matches. */
export function schemaCheck(
  value: unknown,
  schema: JsonSchema,
  document: JsonSchema,
): string | undefined {
  return misfitOf(value, schema, (document["components"] as { schemas: JsonSchema }).schemas); // safe: as in each document
}

const ajv = new Ajv2020({ strict: false, logger: false, addUsedSchema: false, inlineRefs: false });
formats.default(ajv);
const bySchema = new WeakMap<JsonSchema, ValidateFunction>();
const byText = new Map<string, ValidateFunction>();

/** Hundreds of servers say the same of their errors: what reads the same is compiled once. */
function misfitOf(value: unknown, schema: JsonSchema, schemas: JsonSchema): string | undefined {
  let validate = bySchema.get(schema);
  if (validate === undefined) {
    const whole = { ...schema, components: { schemas: reachedFrom(schema, schemas) } };
    const text = JSON.stringify(whole);
    validate = byText.get(text) ?? ajv.compile(whole);
    byText.set(text, validate);
    bySchema.set(schema, validate);
  }
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

function reachedFrom(schema: JsonSchema, schemas: JsonSchema): JsonSchema {
  const found: Record<string, unknown> = {};
  const visit = (part: unknown) => {
    for (const [, name = ""] of String(JSON.stringify(part)).matchAll(
      /"#\/components\/schemas\/([^"/]+)/g,
    )) {
      if (name in found) continue;
      found[name] = schemas[name];
      visit(schemas[name]);
    }
  };
  visit(schema);
  return found;
}
