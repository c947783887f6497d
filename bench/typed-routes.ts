// Writes the same 300 routes three times: as an OpenAPI document, as features whose types are inferred, and with Hono.
import { z } from "zod";

/** A feature has five routes. */
export const features = 60;
/** The features that a client calls, each of them three times. */
const called = Array.from({ length: 10 }, (_, index) => index * 6);
const names = Array.from({ length: features }, (_, index) => `r${index}`);

/** The schemas of all features, as a module: none has the same members as another. */
export function schemasModule(): string {
  return `import { z } from "zod";\n${names.map(schemasOf).join("\n")}`;
}

function schemasOf(name: string, index: number): string {
  return `const ${name}Body = z.object({
  name: z.string().min(1).max(${100 + index}),
  sizeMb: z.number().positive(),
  kind: z.enum(["report", "photo", "film${index}"]),
  tags: z.array(z.string().max(40)).max(20).optional(),
  owner${index}: z.object({ id: z.string(), email: z.email(), since: z.string().nullable() }),
  visibility: z.discriminatedUnion("type", [
    z.object({ type: z.literal("private") }),
    z.object({ type: z.literal("shared"), with: z.array(z.string()), until${index}: z.string().optional() }),
  ]),
  note${index}: z.string().optional(),
});
const ${name}Item = ${name}Body.extend({ id: z.uuid(), createdAt: z.string(), revision: z.int(), checksum${index}: z.string() });
export const ${name} = {
  params: z.object({ id: z.uuid() }),
  query: z.object({ limit: z.coerce.number().int().max(100).optional(), cursor: z.string().optional(), by${index}: z.enum(["name", "size"]).optional() }),
  body: ${name}Body,
  patch: ${name}Body.partial(),
  item: ${name}Item,
  list: z.object({ items: z.array(${name}Item), next: z.string().optional(), total${index}: z.int() }),
};
`;
}

interface Schemas {
  readonly params: z.ZodType;
  readonly query: z.ZodType;
  readonly body: z.ZodType;
  readonly patch: z.ZodType;
  readonly item: z.ZodType;
  readonly list: z.ZodType;
}

/** The document of all routes, with keelson's one error body: each status says which codes it can have. */
export function documentOf(schemas: Readonly<Record<string, Schemas>>): object {
  const paths = names.flatMap((name) => {
    const { params, query, body, patch, item, list } = schemas[name] as Schemas; // safe: `schemasModule` has all names
    const inPath = parametersOf(params, "path");
    const byId = { 404: ["not_found"] };
    return [
      [
        `/${name}`,
        {
          get: operation(`${name}.list`, {
            parameters: parametersOf(query, "query"),
            answer: list,
          }),
          post: operation(`${name}.create`, {
            body,
            answer: item,
            status: 201,
            errors: { 409: [`${name}_full`] },
          }),
        },
      ],
      [
        `/${name}/{id}`,
        {
          get: operation(`${name}.show`, { parameters: inPath, answer: item, errors: byId }),
          patch: operation(`${name}.change`, {
            parameters: inPath,
            body: patch,
            answer: item,
            errors: { ...byId, 409: ["locked"] },
          }),
          delete: operation(`${name}.delete`, { parameters: inPath, answer: item, errors: byId }),
        },
      ],
    ] as const;
  });
  const bodies = { Error: errorSchema, Problem: problemSchema };
  const answers = sharedErrors.map((codes) => [codes.join("."), errorAnswer(codes)]);
  const components = { schemas: bodies, responses: Object.fromEntries(answers) };
  return {
    openapi: "3.1.0",
    info: { title: "routes", version: "1" },
    paths: Object.fromEntries(paths),
    components,
  };
}

interface Operation {
  readonly parameters?: readonly object[];
  readonly body?: z.ZodType;
  readonly answer: z.ZodType;
  readonly status?: number;
  readonly errors?: Readonly<Record<number, readonly string[]>>;
}

const text = { type: "string" };
const fieldErrors = {
  type: "array",
  items: { type: "object", properties: { field: text, error: text }, required: ["field", "error"] },
};
const errorSchema = {
  type: "object",
  properties: { error: text, message: text, requestId: text, fields: fieldErrors },
  required: ["error", "message", "requestId"],
};
const problemMembers = { type: text, title: text, status: { type: "integer" }, detail: text };
const problemSchema = {
  allOf: [
    { $ref: "#/components/schemas/Error" },
    { type: "object", properties: problemMembers, required: Object.keys(problemMembers) },
  ],
};
/** The codes that any operation can give, by status. */
const everywhere: Readonly<Record<number, readonly string[]>> = {
  400: ["malformed_request"],
  401: ["unauthenticated"],
  403: ["access_denied"],
  422: ["validation_error"],
  500: ["internal_error"],
  503: ["config_unavailable", "overloaded"],
  504: ["timeout"],
};
const sharedErrors = [...Object.values(everywhere), ["not_found"]];

function operation(
  operationId: string,
  { parameters = [], body, answer, status = 200, errors = {} }: Operation,
): object {
  const failures = Object.entries({ ...everywhere, ...errors }).map(([status, codes]) => {
    const isShared = sharedErrors.some((shared) => shared.join() === codes.join());
    return [
      status,
      isShared ? { $ref: `#/components/responses/${codes.join(".")}` } : errorAnswer(codes),
    ];
  });
  return {
    operationId,
    parameters,
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, ...json(z.toJSONSchema(body, { io: "input" })) } }),
    responses: {
      [status]: { description: "done", ...json(z.toJSONSchema(answer)) },
      ...Object.fromEntries(failures),
    },
  };
}

/** The one error body, with the codes that it can have. */
function errorAnswer(codes: readonly string[]): object {
  const narrowed = { type: "object", properties: { error: { enum: codes } }, required: ["error"] };
  const body = (name: string) => ({
    schema: { allOf: [{ $ref: `#/components/schemas/${name}` }, narrowed] },
  });
  return {
    description: codes.join(),
    content: { "application/json": body("Error"), "application/problem+json": body("Problem") },
  };
}

function json(schema: object): object {
  return { content: { "application/json": { schema: { ...schema, $schema: undefined } } } }; // a document names its dialect once
}

function parametersOf(schema: z.ZodType, place: "path" | "query"): object[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" });
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: required.includes(name),
    schema,
  }));
}

/** Thirty calls through `openapi-fetch`. */
export function openapiClient(): string {
  return `import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";
const client = createClient<paths>({ baseUrl: "http://localhost" });
${called
  .map(
    (n) => `{
  const { data, error } = await client.GET("/r${n}", { params: { query: { limit: 10, by${n}: "name" } } });
  if (error) throw new Error(error.error); else data.items[0]?.owner${n}.email.trim();
  // @ts-expect-error
  data.items[0]?.nothing;
  const made = await client.POST("/r${n}", { body: ${bodyOf(n)} });
  if (made.error?.error === "r${n}_full") made.error.message.trim(); else made.data?.checksum${n}.trim();
  const shown = await client.GET("/r${n}/{id}", { params: { path: { id: "x" } } });
  if (shown.error?.error === "not_found") shown.error.requestId.trim(); else shown.data?.revision.toFixed();
}`,
  )
  .join("\n")}
export {};
`;
}

function bodyOf(n: number): string {
  return `{ name: "a", sizeMb: 1, kind: "film${n}", owner${n}: { id: "1", email: "a@b.c", since: null }, visibility: { type: "shared", with: [] } }`;
}

/** The least that inference needs of a server: declarations that are returned, since what a callback registers has no type. */
export function inferredServer(): string {
  return `import type { z } from "zod";
import * as s from "./schemas.ts";
interface Route<R extends string, I, B, O, E> { route: R; input: I; body: B; output: O; errors: E }
type Schema = z.ZodType;
export function route<const R extends string, I extends Schema, B extends Schema, O extends Schema, const E extends Record<string, number> = {}>(
  route: R,
  options: { input?: I; body?: B; output: O; errors?: E; handler: (input: z.output<I>, body: z.output<B>) => Promise<z.input<O>> },
): Route<R, z.input<I>, z.input<B>, z.output<O>, keyof E> {
  return { route, ...options } as never;
}
type Routes<F> = F extends readonly (infer T)[] ? T : never;
export type Api<S> = S extends { features: Record<string, infer F> } ? { [T in Routes<F> as T extends { route: infer R extends string } ? R : never]: T } : never;
declare const found: never;
${names
  .map(
    (name) => `const ${name} = [
  route("GET /${name}", { input: s.${name}.query, output: s.${name}.list, handler: async () => found }),
  route("POST /${name}", { body: s.${name}.body, output: s.${name}.item, errors: { ${name}_full: 409 }, handler: async (_, body) => ({ ...body, id: body.name, createdAt: "", revision: 1, checksum${name.slice(1)}: "" }) }),
  route("GET /${name}/:id", { input: s.${name}.params, output: s.${name}.item, errors: { not_found: 404 }, handler: async () => found }),
  route("PATCH /${name}/:id", { input: s.${name}.params, body: s.${name}.patch, output: s.${name}.item, errors: { not_found: 404, locked: 409 }, handler: async () => found }),
  route("DELETE /${name}/:id", { input: s.${name}.params, output: s.${name}.item, errors: { not_found: 404 }, handler: async () => found }),
];`,
  )
  .join("\n")}
export const server = { features: { ${names.join(", ")} } };
`;
}

/** Thirty calls whose types are those of the server. */
export function inferredClient(): string {
  return `import type { Api, server } from "./server.ts";
type Routes = Api<typeof server>;
type Failure<E> = { error: E | "validation_error" | "unauthenticated"; message: string; requestId: string };
type Given<T> = T extends { input: infer I; body: infer B } ? (unknown extends I ? {} : { input: I }) & (unknown extends B ? {} : { body: B }) : never;
type Answer<T> = T extends { output: infer O; errors: infer E } ? { data: O; error?: undefined } | { data?: undefined; error: Failure<E> } : never;
declare function call<R extends keyof Routes>(route: R, given: Given<Routes[R]>): Promise<Answer<Routes[R]>>;
${called
  .map(
    (n) => `{
  const { data, error } = await call("GET /r${n}", { input: { limit: 10, by${n}: "name" } });
  if (error) throw new Error(error.error); else data.items[0]?.owner${n}.email.trim();
  // @ts-expect-error
  data.items[0]?.nothing;
  const made = await call("POST /r${n}", { body: ${bodyOf(n)} });
  if (made.error?.error === "r${n}_full") made.error.message.trim(); else made.data?.checksum${n}.trim();
  const shown = await call("GET /r${n}/:id", { input: { id: "x" } });
  if (shown.error?.error === "not_found") shown.error.requestId.trim(); else shown.data?.revision.toFixed();
}`,
  )
  .join("\n")}
export {};
`;
}

/** As Hono's documentation of RPC has it: a router per feature, chained, and errors as answers of the handlers. */
export function honoServer(): string {
  const failure = (code: string) => `{ error: "${code}" as const, message: "", requestId: "" }`;
  return `import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import type { z } from "zod";
import * as s from "./schemas.ts";
declare function find<T extends z.ZodType>(schema: T): Promise<z.output<T> | undefined>;
${names
  .map(
    (name) => `const ${name} = new Hono()
  .get("/", zValidator("query", s.${name}.query), async (c) => { const found = await find(s.${name}.list); return found ? c.json(found, 200) : c.json(${failure("unauthenticated")}, 401); })
  .post("/", zValidator("json", s.${name}.body), async (c) => { const made = await find(s.${name}.item); return made ? c.json(made, 201) : c.json(${failure(`${name}_full`)}, 409); })
  .get("/:id", zValidator("param", s.${name}.params), async (c) => { const found = await find(s.${name}.item); return found ? c.json(found, 200) : c.json(${failure("not_found")}, 404); })
  .patch("/:id", zValidator("param", s.${name}.params), zValidator("json", s.${name}.patch), async (c) => { const found = await find(s.${name}.item); return found ? c.json(found, 200) : c.json(${failure("locked")}, 409); })
  .delete("/:id", zValidator("param", s.${name}.params), async (c) => { const found = await find(s.${name}.item); return found ? c.json(found, 200) : c.json(${failure("not_found")}, 404); });`,
  )
  .join("\n")}
export const server = new Hono()${names.map((name) => `.route("/${name}", ${name})`).join("\n  ")};
`;
}

/** Thirty calls through Hono's client. */
export function honoClient(): string {
  return `import { hc } from "hono/client";
import type { server } from "./server.ts";
const client = hc<typeof server>("http://localhost");
${called
  .map(
    (n) => `{
  const answer = await client.r${n}.$get({ query: { limit: "10", by${n}: "name" } });
  if (answer.status !== 200) throw new Error("no"); else (await answer.json()).items[0]?.owner${n}.email.trim();
  // @ts-expect-error
  (await answer.json()).items[0]?.nothing;
  const made = await client.r${n}.$post({ json: ${bodyOf(n)} });
  if (made.status === 409) (await made.json()).message.trim(); else if (made.status === 201) (await made.json()).checksum${n}.trim();
  const shown = await client.r${n}[":id"].$get({ param: { id: "x" } });
  if (shown.status === 404) (await shown.json()).requestId.trim(); else if (shown.status === 200) (await shown.json()).revision.toFixed();
}`,
  )
  .join("\n")}
export {};
`;
}
