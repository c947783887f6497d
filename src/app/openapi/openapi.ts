import { parseRoute } from "../../parts/http/route.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { answerHeaders, takesNothing } from "./answers.ts";
import { createComponents } from "./components.ts";
import type { DeclaredHandler, DeclaredOperation } from "./declared-operation.ts";
import { type ErrorAnswers, errorSchemas } from "./error-answers.ts";
import { createSchemaReader, type UnsaidSchema } from "./json-schema.ts";
import { operationOf } from "./operation.ts";
import { ownOperations } from "./own-operations.ts";
import { headerParameters } from "./request-headers.ts";
import { namesOf, sentAsText, templateOf } from "./request-parts.ts";
import type { JsonSchema } from "./schema.ts";

export interface OpenApiOptions {
  /** keelson's own handlers. */
  readonly own: readonly DeclaredHandler[];
  /**
   * Directory from which the application's packages are resolved. Default: the working directory of
   * the process.
   */
  readonly from?: string;
}

export interface OpenApiDocument {
  /** Byte-identical for the same declarations. */
  readonly document: JsonSchema;
  /** Schemas and parts of schemas that JSON Schema cannot express. */
  readonly unsaid: readonly UnsaidSchema[];
}

/** Creates the OpenAPI 3.1 document of a server, with the routes of its features and of keelson. */
export async function openApiDocument(
  server: DeclaredServer,
  { own, from }: OpenApiOptions,
): Promise<OpenApiDocument> {
  const { registry, options } = server;
  const reader = createSchemaReader(from === undefined ? {} : { from });
  const components = createComponents(errorSchemas);
  const errors: ErrorAnswers = new Map();
  const firstNames = new Map<string, readonly string[]>();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const handler of [...registry.handlers.values(), ...own]) {
    const route = handler.route === undefined ? undefined : parseRoute(handler.route);
    if (route === undefined || "problem" in route) continue;
    const ownOperation = handler.feature === "keelson" ? ownOperations[handler.name] : undefined;
    const read = async (side: "input" | "output") => {
      const schema = handler[side];
      if (schema === undefined) return side === "input" ? ownOperation?.input : undefined;
      const isSentAsText = side === "input" ? sentAsText(route, handler) : undefined;
      const said = await reader.read(schema, side, `${handler.name} ${side}`, isSentAsText);
      return components.embed(said, `${handler.name}.${side}`);
    };
    const names = namesOf(route.segments);
    // Paths that differ only in parameter names are the same path to OpenAPI, which allows each
    // path once.
    const shape = templateOf(
      route.segments,
      names.map(() => ""),
    );
    const pathNames = firstNames.get(shape) ?? names;
    firstNames.set(shape, pathNames);
    const operation: DeclaredOperation = {
      route,
      pathNames,
      handler,
      own: ownOperation,
      input: await read("input"),
      output: await read("output"),
      mayBeNothing: await takesNothing(handler),
    };
    const path = templateOf(route.segments, pathNames);
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operationOf(operation, components, server, errors),
    };
  }
  const used = {
    paths,
    responses: Object.fromEntries(
      [...errors.keys()].sort().map((name) => [name, errors.get(name)]),
    ),
  };
  const document = {
    openapi: "3.1.1",
    info: infoOf(options.openapi),
    servers: [{ url: options.basePath || "/" }],
    tags: tagsOf(paths),
    paths,
    components: {
      schemas: components.reachedFrom(used),
      responses: used.responses,
      parameters: reachedOf("parameters", headerParameters, used),
      headers: reachedOf("headers", answerHeaders, used),
      securitySchemes: { bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
    },
  };
  const ofBytes = new Set(
    [...registry.handlers.values()]
      .filter(({ body }) => body === "bytes")
      .map(({ name }) => `${name} input: body`),
  );
  return { document, unsaid: reader.unsaid.filter(({ where }) => !ofBytes.has(where)) };
}

export function documentText(document: JsonSchema): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function infoOf(given: DeclaredServer["options"]["openapi"]): JsonSchema {
  const { title = "API", version = "0.0.0" } = given === false ? {} : (given ?? {});
  return { title, version };
}

function tagsOf(
  paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>,
): JsonSchema[] {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  // Safe: each operation has tags.
  const names = new Set(operations.flatMap(({ tags }) => tags as readonly string[]));
  const description = (name: string) =>
    name === "keelson" ? "What every server has." : `The feature ${name}.`;
  return [...names].map((name) => ({ name, description: description(name) }));
}

function reachedOf(
  kind: string,
  all: Readonly<Record<string, JsonSchema>>,
  used: unknown,
): JsonSchema {
  const text = JSON.stringify(used);
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)),
  );
}
