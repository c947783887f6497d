import { type AccessRule, describeRule, needsIdentity } from "../../base/identity/access.ts";
import { namesTokens } from "../../base/identity/auth-options.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { isRateLimited } from "../registry/expected-code.ts";
import type { ServerOptions } from "../registry/options.ts";
import { type RoutedHandler, routed } from "../registry/registry.ts";
import {
  answerHeaders,
  answersOf,
  type ErrorAnswers,
  errorsOf,
  type OpenApiSpec,
  takesNothing,
} from "./answers.ts";
import { apiKeyOperations } from "./api-key-operations.ts";
import { sortedBy } from "./canonical.ts";
import { type Components, createComponents } from "./components.ts";
import { errorSchemas } from "./error-schemas.ts";
import {
  createSchemaReader,
  type SchemaReader,
  type ServerDocument,
  titleOf,
} from "./json-schema.ts";
import { type DeclaredHandler, type DeclaredOperation, ownOperations } from "./own-operations.ts";
import {
  headerParameters,
  namesOf,
  requestHeaders,
  requestOf,
  sentAsText,
  templateOf,
} from "./request-parts.ts";
import type { JsonSchema, Schemas } from "./schema.ts";

export type { OpenApiSpec } from "./answers.ts";
export type { ServerDocument as OpenApiDocument } from "./json-schema.ts";

interface OpenApiOptions {
  readonly own: readonly DeclaredHandler[];
  readonly from?: string;
  readonly spec?: OpenApiSpec;
}

/** OpenAPI, including keelson's own routes. */
export async function openApiDocument(
  server: DeclaredServer,
  { own, from, spec = "3.1" }: OpenApiOptions,
): Promise<ServerDocument> {
  const { registry, options } = server;
  const reader = createSchemaReader({ from });
  const components = createComponents(errorSchemas);
  const errors: ErrorAnswers = new Map();
  const firstNames = new Map<string, readonly string[]>();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const routes = routed([...registry.handlers.values(), ...own]);
  // In parallel, because concurrent reads share one wait.
  const schemas = await Promise.all(routes.map((routed) => readSchemas(reader, routed)));
  for (const [index, { route, target: handler }] of routes.entries()) {
    const ownOperation = handler.feature === "keelson" ? ownOperations[handler.name] : undefined;
    const embedded = (side: "input" | "output") => {
      const said = schemas[index]?.[side];
      return said && components.embed(said, `${handler.name}.${side}`);
    };
    const names = namesOf(route.segments);
    // To OpenAPI, paths that differ only in parameter names are equal.
    const shape = templateOf(route.segments, []);
    const pathNames = firstNames.get(shape) ?? names;
    firstNames.set(shape, pathNames);
    const operation: DeclaredOperation = {
      route,
      pathNames,
      handler,
      own: ownOperation,
      input: embedded("input") ?? ownOperation?.input,
      output: embedded("output"),
      stream: handler.stream?.kind,
      mayBeNothing: await takesNothing(handler),
      isLimited: isRateLimited(handler, server),
    };
    const path = templateOf(route.segments, pathNames);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operationOf(operation, components, server, { errors, spec }),
    };
  }
  const responses = Object.fromEntries(sortedBy([...errors], ([name]) => name));
  const used = { paths, responses };
  const document = {
    openapi: spec === "3.2" ? "3.2.0" : "3.1.1",
    info: titleOf(options),
    servers: [{ url: options.basePath || "/" }],
    tags: tagsOf(paths),
    paths,
    components: {
      schemas: components.reachedFrom(used),
      responses,
      parameters: reachedOf("parameters", headerParameters, used),
      headers: reachedOf("headers", answerHeaders, used),
      securitySchemes: securitySchemes(options),
    },
  };
  const ofBytes = new Set(
    [...registry.handlers.values()]
      .filter(({ body }) => body === "bytes")
      .map(({ name }) => `${name} input: body`),
  );
  return { document, unsaid: reader.unsaid.filter(({ where }) => !ofBytes.has(where)) };
}

async function readSchemas(
  reader: SchemaReader,
  { route, target: handler }: RoutedHandler<DeclaredHandler>,
) {
  const { name, input, output, stream } = handler;
  const whole = stream?.item ?? output;
  const [readInput, readOutput] = await Promise.all([
    input && reader.read(input, "input", `${name} input`, sentAsText(route, handler)),
    whole && reader.read(whole, "output", `${name} output`),
  ]);
  return { input: readInput, output: readOutput };
}

function operationOf(
  operation: DeclaredOperation,
  components: Components,
  server: DeclaredServer,
  { errors, spec }: { readonly errors: ErrorAnswers; readonly spec: OpenApiSpec },
) {
  const { handler, own } = operation;
  const { parameters, requestBody } = requestOf(operation, components);
  // Safe cast: boot refuses a route without an access rule.
  const rule = handler.access as AccessRule;
  return {
    operationId: handler.name,
    summary: own?.summary ?? summaryOf(handler.name),
    description: own?.description ?? `${accessOf(handler, rule)}.`,
    tags: [handler.feature],
    // A public route accepts a token but does not require one. A webhook does not read it.
    security: [
      ...(needsIdentity(rule) ? [] : [{}]),
      ...(handler.webhook === undefined ? securityOf(handler, server.options) : []),
    ],
    "x-keelson-access": handler.webhook === undefined ? describeRule(rule) : "signature",
    parameters: [...parameters, ...requestHeaders(handler, server.options)],
    ...(requestBody && { requestBody: limited(requestBody, handler) }),
    responses: {
      ...answersOf(operation, components, { ...server.options, spec }),
      ...errorsOf(operation, server, errors),
    },
  };
}

/** States a limit that only this operation has. */
function limited(body: JsonSchema, { bodyBytes }: DeclaredHandler): JsonSchema {
  if (bodyBytes === undefined) return body;
  const most = `At most ${bodyBytes.toLocaleString("en")} bytes.`;
  return { ...body, description: [body["description"], most].filter(Boolean).join(" ") };
}

const schemes = {
  bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
  apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
  application: {
    type: "http",
    scheme: "application",
    description: "In the application's own way, for example by a session cookie.",
  },
};

function securitySchemes({ auth }: ServerOptions) {
  const { bearer, apiKey, application } = schemes;
  const isResolved = auth?.resolve !== undefined;
  return {
    ...(isResolved && !namesTokens(auth) ? {} : { bearer }),
    ...(auth?.apiKeys ? { apiKey } : {}),
    ...(isResolved ? { application } : {}),
  };
}

function accessOf({ webhook }: DeclaredHandler, rule: AccessRule): string {
  return webhook === undefined
    ? `Access rule: ${describeRule(rule)}`
    : "For the sender of the webhook, who signs each request";
}

/** API keys cannot manage API keys. */
function securityOf({ name }: DeclaredHandler, options: ServerOptions) {
  const names = Object.keys(securitySchemes(options));
  const isManaging = name in apiKeyOperations;
  return names.filter((scheme) => scheme !== "apiKey" || !isManaging).map((one) => ({ [one]: [] }));
}

function summaryOf(name: string): string {
  const words = name
    .slice(name.indexOf(".") + 1)
    .replaceAll("-", " ")
    .replace(".", ": ");
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

export function documentText(document: JsonSchema): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function tagsOf(paths: Readonly<Record<string, Schemas>>): JsonSchema[] {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  // Safe cast: each operation has tags.
  const names = new Set(operations.flatMap(({ tags }) => tags as readonly string[]));
  const description = (name: string) =>
    name === "keelson" ? "Routes of every server." : `The feature ${name}.`;
  return [...names].map((name) => ({ name, description: description(name) }));
}

function reachedOf(kind: string, all: Schemas, used: unknown): JsonSchema {
  const text = JSON.stringify(used);
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)),
  );
}
