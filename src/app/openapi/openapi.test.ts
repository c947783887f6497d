import { type, scope as types } from "arktype";
import * as v from "valibot";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import type { BodyLimits } from "../../parts/http/limits.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import { defineFeature } from "../features/feature.ts";
import type { FeatureBuilder } from "../features/feature-builder.ts";
import type { ServerOptions } from "../registry/options.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { documentText, openApiDocument } from "./openapi.ts";

type Document = Readonly<Record<string, never>>;
const everyone = access.everyone;
const handler = () => undefined as never;

/** The document of a server with one feature. */
async function documentOf(
  declare: (r: FeatureBuilder) => void,
  options: Partial<ServerOptions> = {},
) {
  const server = buildServer({
    ...options,
    features: [defineFeature("mugs", (r) => void declare(r as FeatureBuilder))],
  });
  const { document, unsaid } = await openApiDocument(serverInternals(server), { own: [] });
  const paths = document["paths"] as Readonly<
    Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>
  >;
  const [[path, methods] = ["", {}]] = Object.entries(paths);
  const [[method, operation] = ["", {}]] = Object.entries(methods);
  return {
    document: document as unknown as Document & typeof document,
    unsaid,
    path,
    method,
    operation,
    paths,
  };
}

/** The parameters and the body of one write's document, without headers. */
async function requestOf(
  route: string,
  input: z.ZodType | undefined | object,
  options: { readonly body?: BodyKind; readonly limits?: BodyLimits } = {},
) {
  const { operation, unsaid } = await documentOf((r) => {
    const declare = route.startsWith("GET") ? r.query : r.write;
    declare("mug.touch", {
      route,
      access: everyone,
      ...(input && { input: input as z.ZodType }),
      ...options,
      handler,
    } as never);
  });
  const parameters = (
    (operation["parameters"] ?? []) as readonly Readonly<Record<string, unknown>>[]
  ).filter((one) => !("$ref" in one));
  return { parameters, body: operation["requestBody"], unsaid };
}

const text = { type: "string" };
const inPath = (name: string, schema: object = { ...text, minLength: 1 }) => ({
  name,
  in: "path",
  required: true,
  schema,
});
const inQuery = (name: string, schema: object, isRequired = false) => ({
  name,
  in: "query",
  ...(isRequired && { required: true }),
  schema,
});
const body = (mediaType: string, schema: object, required = true) => ({
  required,
  content: { [mediaType]: { schema } },
});
const json = (schema: object, required = true) => body("application/json", schema, required);
const object = (properties: object, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required }),
});

test("a document waits once for a later time, however many schemas have defaults", async () => {
  const wait = vi.spyOn(Atomics, "wait");
  await documentOf((r) => {
    for (const name of ["first", "second", "third"]) {
      const schema = z.object({ size: z.number().default(1) });
      r.write(`mug.${name}`, {
        route: `POST /${name}`,
        ...{ access: everyone, input: schema, output: schema, handler },
      });
    }
  });

  expect(wait).toHaveBeenCalledTimes(1);
});

describe("the fields of an input", () => {
  test("come from the path if it names them, and a segment is never empty", async () => {
    const input = z.object({
      id: z.string().max(5),
      size: z.coerce.number(),
      name: z.string().min(2),
    });
    expect((await requestOf("GET /mugs/:id/:size/:name", input)).parameters).toEqual([
      inPath("id", { ...text, maxLength: 5, minLength: 1 }),
      inPath("size", { type: "number" }),
      inPath("name", { ...text, minLength: 2 }),
    ]);
    expect((await requestOf("GET /mugs/:id", undefined)).parameters).toEqual([inPath("id")]);
  });

  test("come from the query of a GET", async () => {
    const input = z.object({
      id: z.string(),
      order: z.string(),
      limit: z.coerce.number().default(5),
    });
    expect(await requestOf("GET /mugs/:id", input)).toMatchObject({
      parameters: [
        inPath("id"),
        inQuery("order", text, true),
        inQuery("limit", { type: "number", default: 5 }),
      ],
      body: undefined,
    });
  });

  test("have two elements or more as a list in a query, since a single one arrives as a text", async () => {
    const list = (minItems: number) => ({ type: "array", items: text, minItems });
    const input = z.object({
      few: z.array(z.string()),
      many: z.array(z.string()).min(3),
      either: z.union([z.string(), z.array(z.string())]),
    });
    expect((await requestOf("GET /mugs", input)).parameters).toEqual([
      inQuery("few", list(2), true),
      inQuery("many", list(3), true),
      inQuery("either", { anyOf: [text, { type: "array", items: text }] }, true),
    ]);
  });

  test("come from the body of a write", async () => {
    const input = z.object({ id: z.string(), name: z.string(), note: z.string().optional() });
    expect(await requestOf("PUT /mugs/:id", input)).toMatchObject({
      parameters: [inPath("id")],
      body: json(object({ name: text, note: text }, ["name"])),
    });
    expect((await requestOf("PUT /mugs/:id", z.object({ id: z.string() }))).body).toBeUndefined();
    expect((await requestOf("PUT /mugs/:id", z.looseObject({ id: z.string() }))).body).toEqual(
      json({ ...object({}), additionalProperties: {} }, false),
    );
    expect((await requestOf("POST /mugs", z.object({ name: z.string().optional() }))).body).toEqual(
      json(object({ name: text }, []), false),
    );
  });

  test("come from the query of a DELETE when they are texts, and otherwise from its body", async () => {
    const texts = z.object({
      id: z.string(),
      reason: z.string(),
      how: z.enum(["now", "later"]).optional(),
      sure: z.literal("yes"),
    });
    expect(await requestOf("DELETE /mugs/:id", texts)).toMatchObject({
      parameters: [
        inPath("id"),
        inQuery("reason", text, true),
        inQuery("how", { ...text, enum: ["now", "later"] }),
        inQuery("sure", { ...text, const: "yes" }, true),
      ],
      body: undefined,
    });
    const arks = type({ how: "'now' | 'later'", "why?": "string | null", sure: "'yes'" });
    expect((await requestOf("DELETE /mugs", arks)).parameters).toHaveLength(3);
    const count = {
      type: "integer",
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
    };
    expect(
      (await requestOf("DELETE /mugs/:id", z.object({ id: z.string(), count: z.int() }))).body,
    ).toEqual(json(object({ count })));
    expect((await requestOf("DELETE /mugs", type({ level: "1 | 2" }))).body).toEqual(
      json(object({ level: { enum: [1, 2] } })),
    );
    expect((await requestOf("DELETE /mugs", undefined)).body).toBeUndefined();
    expect((await requestOf("DELETE /mugs", undefined, { body: "text" })).body).toMatchObject(
      body("text/plain", text, false),
    );
  });

  test("come from the query when the whole body is text or bytes", async () => {
    const put = "PUT /mugs/:id";
    const note = z.object({ id: z.string(), body: z.string().max(9), by: z.string().optional() });
    expect(await requestOf(put, note, { body: "text" })).toMatchObject({
      parameters: [inPath("id"), inQuery("by", text)],
      body: body("text/plain", { ...text, maxLength: 9, minLength: 1 }),
    });
    const bytes = { ...text, format: "binary" };
    const image = z.object({ id: z.string(), body: z.instanceof(Uint8Array).optional() });
    expect(await requestOf(put, image, { body: "bytes" })).toMatchObject({
      parameters: [inPath("id")],
      body: body("application/octet-stream", bytes, false),
      unsaid: [],
    });
    expect((await requestOf(put, z.object({ id: z.string() }), { body: "text" })).body).toEqual(
      body("text/plain", text, false),
    );
  });

  test("come from the query when the whole body is a JSON value", async () => {
    const input = z.object({ body: z.array(z.string()), dry: z.string().optional() });
    expect(await requestOf("POST /mugs", input, { body: "value" })).toMatchObject({
      parameters: [inQuery("dry", text)],
      body: json({ type: "array", items: text }),
    });
    const ofText = await requestOf("POST /mugs", z.object({ body: z.string() }), { body: "value" });
    expect(ofText.body).toEqual(json(text));
    expect((await requestOf("POST /mugs", z.object({ body: z.string() }))).body).toEqual(
      json(object({ body: text })),
    );
    const unsaid = await requestOf("POST /mugs", z.object({}), { body: "value" });
    expect(unsaid.body).toMatchObject({ content: { "application/json": { schema: {} } } });
  });

  test("are texts in a form, whose lists have two elements or more", async () => {
    const form = "application/x-www-form-urlencoded";
    const input = z.object({ name: z.string(), tags: z.array(z.string()) });
    expect((await requestOf("POST /mugs", input, { body: "form" })).body).toMatchObject(
      body(form, object({ name: text, tags: { type: "array", items: text, minItems: 2 } })),
    );
    expect(
      (await requestOf("POST /mugs", z.record(z.string(), z.string()), { body: "form" })).body,
    ).toMatchObject(body(form, { type: "object" }, false));
  });

  test("repeat their name in a form for each element of a list, since clients would join it with commas", async () => {
    const fields = {
      name: z.string(),
      all: z.array(z.string()),
      some: z.union([z.string(), z.array(z.string())]).optional(),
    };
    const repeated = { style: "form", explode: true };
    const { body: sent } = await requestOf("POST /mugs", z.object(fields), { body: "form" });
    expect(sent).toMatchObject({
      content: {
        "application/x-www-form-urlencoded": { encoding: { all: repeated, some: repeated } },
      },
    });
    const { body: ofTexts } = await requestOf("POST /mugs", z.object({ name: z.string() }), {
      body: "form",
    });
    expect(JSON.stringify(ofTexts)).not.toContain("encoding");
  });

  test.each([
    ["json", "application/json", { type: "object" }],
    ["value", "application/json", {}],
    ["form", "application/x-www-form-urlencoded", { type: "object" }],
    ["multipart", "multipart/form-data", { type: "object" }],
    ["text", "text/plain", text],
    ["bytes", "application/octet-stream", { ...text, format: "binary" }],
  ] as const)(
    "may be anything of their kind in a body of %s without a schema",
    async (kind, mediaType, schema) => {
      const description = "The operation does not declare an input, so its body is not described.";
      expect((await requestOf("POST /mugs", undefined, { body: kind })).body).toEqual({
        ...body(mediaType, schema, false),
        description,
      });
    },
  );

  test("are parts of multipart/form-data, of which some are files", async () => {
    const input = z.object({
      title: z.string(),
      scan: z.file().max(5),
      tags: z.array(z.string()).optional(),
    });
    const { body: sent, unsaid } = await requestOf("POST /mugs", input, { body: "multipart" });
    expect(unsaid).toEqual([]);
    expect(sent).toEqual(
      body("multipart/form-data", {
        type: "object",
        properties: {
          title: text,
          scan: { ...text, format: "binary", contentEncoding: "binary", maxLength: 5 },
          tags: { type: "array", items: text, minItems: 2 },
        },
        required: ["title", "scan"],
      }),
    );
  });

  test("have files in valibot and ArkType too", async () => {
    const file = { ...text, format: "binary" };
    const both = { a: file, b: { type: "array", items: file, minItems: 2 } };
    const expected = body("multipart/form-data", {
      type: "object",
      properties: both,
      required: ["a", "b"],
    });
    const ofValibot = v.object({ a: v.file(), b: v.array(v.instance(File)) });
    const ofArkType = type({ a: "File", b: "File[]" });
    for (const input of [ofValibot, ofArkType]) {
      const { body: sent, unsaid } = await requestOf("POST /mugs", input, { body: "multipart" });
      expect([sent, unsaid]).toEqual([expected, []]);
    }
    const { unsaid } = await requestOf("POST /mugs", type({ a: "Map" }), { body: "multipart" });
    expect(unsaid).toMatchObject([{ why: "ArkType's proto has no JSON Schema; use another type" }]);
  });

  test("name the largest body of a route that has its own", async () => {
    const limits = { bodyBytes: 5_000_000 };
    const { body: sent } = await requestOf("POST /mugs", z.object({ name: z.string() }), {
      limits,
    });
    expect(sent).toMatchObject({ description: "At most 5,000,000 bytes." });
    const undeclared = await requestOf("POST /mugs", undefined, { limits });
    expect(undeclared.body).toMatchObject({
      description:
        "The operation does not declare an input, so its body is not described. At most 5,000,000 bytes.",
    });
  });

  test("are parameters if all alternatives and parts of an intersection have them", async () => {
    const either = z.union([
      z.object({ id: z.string(), a: z.string() }),
      z.object({ id: z.string(), b: z.string() }),
    ]);
    const { parameters, body: sent } = await requestOf("POST /mugs/:id", either);
    expect(parameters).toEqual([inPath("id")]);
    expect(sent).toEqual(json({ anyOf: [object({ a: text }), object({ b: text })] }));
    expect((await requestOf("GET /mugs/:id", either)).parameters).toEqual([
      inPath("id"),
      inQuery("a", text),
      inQuery("b", text),
    ]);
    const both = v.intersect([
      v.object({ id: v.string() }),
      v.object({ id: v.pipe(v.string(), v.maxLength(9)), c: v.string() }),
    ]);
    expect((await requestOf("GET /mugs/:id", both)).parameters).toEqual([
      inPath("id", { allOf: [text, { ...text, maxLength: 9 }] }),
      inQuery("c", text, true),
    ]);
    expect(
      (await requestOf("POST /mugs", v.intersect([v.object({}), v.object({ c: v.string() })])))
        .body,
    ).toMatchObject({
      required: true,
    });
    expect(
      (await requestOf("POST /mugs", z.union([z.object({}), z.object({ b: z.string() })]))).body,
    ).toMatchObject({
      required: false,
    });
  });

  test("are replaced by the whole input if that is no object", async () => {
    expect((await requestOf("POST /mugs", z.string())).body).toEqual(json(text));
    expect((await requestOf("POST /mugs", z.unknown())).body).toEqual(json({}, false));
    expect((await requestOf("GET /mugs", z.unknown())).parameters).toEqual([]);
    const anything = { input: () => ({ properties: { a: true, b: false } }), output: () => ({}) };
    const own = {
      "~standard": {
        version: 1,
        vendor: "own",
        validate: (value: unknown) => ({ value }),
        jsonSchema: anything,
      },
    };
    expect((await requestOf("GET /mugs", own)).parameters).toEqual([
      inQuery("a", {}),
      inQuery("b", { not: {} }),
    ]);
  });
});

/** The answers of one operation, without those of errors. */
async function answersOf(options: object, kind: "query" | "write" = "query") {
  const { operation } = await documentOf((r) => {
    const route = kind === "query" ? "GET /mugs" : "POST /mugs";
    r[kind]("mug.touch", { route, access: everyone, handler, ...options } as never);
  });
  const responses = operation["responses"] as Readonly<
    Record<string, Readonly<Record<string, unknown>>>
  >;
  const given = Object.entries(responses).filter(([, answer]) => !("$ref" in answer));
  return Object.fromEntries(
    given.map(([status, { content, headers }]) => [
      status,
      { content, headers: Object.keys(headers as object) },
    ]),
  );
}

const id = ["X-Request-ID"];

describe("an operation's answer", () => {
  test("is its output with 200, and 204 if that may be undefined", async () => {
    const mug = z.object({ id: z.string() });
    const content = {
      "application/json": { schema: { ...object({ id: text }), additionalProperties: false } },
    };
    expect(await answersOf({ output: mug })).toEqual({ 200: { content, headers: id } });
    expect(await answersOf({ output: mug.optional() })).toEqual({
      200: { content, headers: id },
      204: { content: undefined, headers: id },
    });
    expect(await answersOf({ output: z.undefined() })).toEqual({
      204: { content: undefined, headers: id },
    });
    const failing = z.unknown().refine(() => {
      throw new Error("no");
    });
    expect(Object.keys(await answersOf({ output: failing }))).toEqual(["200"]);
  });

  test("has the declared statuses", async () => {
    const mug = z.object({ id: z.string() });
    expect(Object.keys(await answersOf({ output: mug, status: 201 }))).toEqual(["201"]);
    expect((await answersOf({ output: mug, status: 201 }))["201"]?.headers).toEqual([
      ...id,
      "Location",
    ]);
    const several = await answersOf({ status: [200, 205, 302, 304] });
    expect(
      Object.entries(several).map(([status, { content }]) => [status, content !== undefined]),
    ).toEqual([
      ["200", true],
      ["205", false],
      ["302", false],
      ["304", false],
    ]);
  });

  test("has any media type when it is a text or undeclared", async () => {
    expect((await answersOf({ output: z.string() }))["200"]?.content).toEqual({
      "*/*": { schema: text },
    });
    const kindsOf = async (output: object) =>
      Object.keys((await answersOf({ output }))["200"]?.content ?? {});
    const named = z.string().meta({ id: "Name" });
    const mug = z.object({ id: z.string() });
    for (const output of [
      named,
      z.enum(["a", "b"]),
      v.picklist(["a", "b"]),
      type("'a'"),
      type("'a' | 'b'"),
    ]) {
      expect(await kindsOf(output)).toEqual(["*/*"]);
    }
    expect(await kindsOf(z.union([named, z.undefined()]))).toEqual(["*/*"]);
    for (const output of [
      z.string().nullable(),
      z.union([mug, named]),
      z.xor([mug, named]),
      z.literal(["a", null]),
      z.json(),
    ]) {
      expect(await kindsOf(output)).toEqual(["application/json", "*/*"]);
    }
    for (const output of [z.unknown(), z.union([mug, z.int()]), v.picklist([1, 2])]) {
      expect(await kindsOf(output)).toEqual(["application/json"]);
    }
    // A union that is an alternative of itself.
    const texts: z.ZodType = z.union([z.string(), z.lazy(() => texts)]);
    const either: z.ZodType = z
      .union([z.int(), z.lazy(() => either), texts])
      .meta({ id: "Either" });
    expect([await kindsOf(texts), await kindsOf(either)]).toEqual([
      ["*/*"],
      ["application/json", "*/*"],
    ]);
    const undeclared = { "*/*": { schema: { description: "The operation declares no output." } } };
    expect(await answersOf({})).toEqual({
      200: { content: undeclared, headers: id },
      204: { content: undefined, headers: id },
    });
  });

  test("says for a write whether it is a replay, unless the write is not deduplicated", async () => {
    const output = z.undefined();
    expect((await answersOf({ output }, "write"))["204"]?.headers).toEqual([
      ...id,
      "Idempotent-Replayed",
    ]);
    expect((await answersOf({ output, once: false }, "write"))["204"]?.headers).toEqual(id);
  });
});

/** The codes that one operation may answer with, by status. */
async function errorsOf(
  kind: "query" | "write",
  options: object,
  server: Partial<ServerOptions> = {},
  more = (_: FeatureBuilder) => {},
) {
  const { operation, document } = await documentOf((r) => {
    more(r);
    r[kind]("mug.touch", {
      route: kind === "query" ? "GET /mugs" : "POST /mugs",
      access: everyone,
      handler,
      ...options,
    } as never);
  }, server);
  const shared =
    (
      document["components"] as unknown as Readonly<
        Record<string, Readonly<Record<string, unknown>>>
      >
    )["responses"] ?? {};
  const codes: Record<string, readonly string[]> = {};
  for (const [status, given] of Object.entries(
    operation["responses"] as Readonly<Record<string, { readonly $ref?: string }>>,
  )) {
    const answer =
      given.$ref === undefined ? given : shared[given.$ref.replace("#/components/responses/", "")];
    const [, found] = /"enum":(\[[^\]]*\])/.exec(JSON.stringify(answer)) ?? [];
    if (found !== undefined) codes[status] = JSON.parse(found);
  }
  return codes;
}

describe("the errors of an operation", () => {
  const own = "pipeline_error";
  const always = {
    400: ["malformed_request", own],
    401: ["unauthenticated", own],
    403: ["access_denied", own],
    404: ["not_found", own],
    413: ["payload_too_large", own],
    415: ["unsupported_media_type", own],
    422: ["validation_error", own],
    500: ["internal_error", "response_too_large", own],
    503: ["config_unavailable", "overloaded", own],
    504: ["timeout", own],
    default: ["malformed_request", own],
  };

  test("of a query are those of every request and those its handler throws", async () => {
    expect(await errorsOf("query", {})).toEqual(always);
  });

  test("of a write include those of replays, as far as it is deduplicated", async () => {
    const unknown = { 409: ["unknown_outcome", own] };
    const repeats = {
      409: ["request_in_progress", "unknown_outcome", own],
      422: ["validation_error", "idempotency_key_reused", own],
    };
    expect(await errorsOf("write", {})).toEqual({ ...always, ...repeats });
    expect(await errorsOf("write", { once: false })).toEqual({ ...always, ...unknown });
    expect(await errorsOf("write", {}, { once: false })).toEqual({
      ...always,
      ...unknown,
    });
    const required = { 400: ["malformed_request", "idempotency_key_required", own] };
    expect(await errorsOf("write", { once: { required: true } })).toEqual({
      ...always,
      ...repeats,
      ...required,
    });
  });

  test("include a result that does not fit the output, unless the server sends it", async () => {
    const output = z.string();
    const mismatch = {
      ...always,
      500: ["internal_error", "response_mismatch", "response_too_large", own],
    };
    expect(await errorsOf("query", { output })).toEqual(mismatch);
    expect(await errorsOf("query", { output }, { output: { mismatch: "send" } })).toEqual(always);
  });

  test("have their own schema next to the framework's when a handler declares them", async () => {
    expect(
      await errorsOf("query", {
        errors: { out_of_stock: 409, cup_gone: 404, teapot: 418, pipeline_error: 504 },
      }),
    ).toEqual({
      ...always,
      504: ["timeout", own],
      404: ["not_found", "cup_gone", own],
      409: ["out_of_stock", own],
      418: ["teapot", own],
    });
  });

  test("include an unreachable table on a server whose tables have tenants", async () => {
    const table = (r: FeatureBuilder) => void r.table("mugs", { partitionKey: "pk", tenant: true });
    expect(await errorsOf("query", {}, {}, table)).toEqual({
      ...always,
      503: ["config_unavailable", "isolation_unavailable", "overloaded", own],
    });
  });

  test("list by status the names of their codes, both media types and the headers", async () => {
    const { document } = await documentOf((r) =>
      r.write("mug.add", { route: "POST /mugs", access: access.tenant, handler }),
    );
    const { responses } = document["components"] as unknown as {
      responses: Readonly<Record<string, Readonly<Record<string, object>>>>;
    };
    expect(Object.keys(responses["Unauthenticated"]?.["headers"] ?? {})).toEqual([
      "X-Request-ID",
      "WWW-Authenticate",
    ]);
    expect(Object.keys(responses["RequestInProgressOrUnknownOutcome"]?.["headers"] ?? {})).toEqual([
      "X-Request-ID",
      "Retry-After",
    ]);
    expect(Object.keys(responses["NotFound"]?.["content"] ?? {})).toEqual([
      "application/json",
      "application/problem+json",
    ]);
  });
});

describe("callers and headers", () => {
  const operationOf = async (
    declare: (r: FeatureBuilder) => void,
    options: Partial<ServerOptions> = {},
  ) => (await documentOf(declare, options)).operation;

  test("a token is required, or optional on an open route", async () => {
    const open = await operationOf((r) =>
      r.query("mug.list", { route: "GET /mugs", access: everyone, handler }),
    );
    expect(open).toMatchObject({ security: [{}, { bearer: [] }], "x-keelson-access": "everyone" });
    const rule = access.anyOf(access.admin, access.roles("potter"));
    const closed = await operationOf((r) =>
      r.query("mug.list", { route: "GET /mugs", access: rule, handler }),
    );
    expect(closed).toMatchObject({
      security: [{ bearer: [] }],
      "x-keelson-access": "anyOf(admin, roles(potter))",
      description: "Access rule: anyOf(admin, roles(potter)).",
    });
  });

  test("API keys and the application's own scheme are alternatives to a token", async () => {
    const declare = (r: FeatureBuilder) =>
      r.query("mug.list", { route: "GET /mugs", access: access.admin, handler });
    const securityOf = async (auth: NonNullable<ServerOptions["auth"]>) => {
      const { document, operation } = await documentOf(declare, { auth });
      const { securitySchemes } = Object(document["components"]);
      return [operation["security"], Object.keys(securitySchemes ?? {})];
    };
    const resolve = () => undefined;
    expect(await securityOf({ apiKeys: true })).toEqual([
      [{ bearer: [] }, { apiKey: [] }],
      ["bearer", "apiKey"],
    ]);
    expect(await securityOf({ resolve })).toEqual([[{ application: [] }], ["application"]]);
    const all = { apiKeys: true, resolve, secret: "s".repeat(32) };
    expect(await securityOf(all)).toEqual([
      [{ bearer: [] }, { apiKey: [] }, { application: [] }],
      ["bearer", "apiKey", "application"],
    ]);
  });

  test("the key of a write is optional, required or ignored", async () => {
    const headersOf = async (once: unknown, options: Partial<ServerOptions> = {}) =>
      (
        await operationOf(
          (r) =>
            r.write("mug.add", { route: "POST /mugs", access: everyone, once, handler } as never),
          options,
        )
      )["parameters"];
    const ref = (name: string) => ({ $ref: `#/components/parameters/${name}` });
    expect(await headersOf(undefined)).toEqual([ref("X-Request-ID"), ref("Idempotency-Key")]);
    expect(await headersOf({ required: true })).toEqual([
      ref("X-Request-ID"),
      ref("Idempotency-Key.required"),
    ]);
    expect(await headersOf(false)).toEqual([ref("X-Request-ID")]);
    expect(await headersOf(undefined, { once: false })).toEqual([ref("X-Request-ID")]);
    expect(await headersOf(undefined, { once: { required: true } })).toEqual([
      ref("X-Request-ID"),
      ref("Idempotency-Key.required"),
    ]);
    expect(await headersOf({ required: false }, { once: { required: true } })).toEqual([
      ref("X-Request-ID"),
      ref("Idempotency-Key"),
    ]);
    expect(await headersOf({}, { once: false })).toEqual([
      ref("X-Request-ID"),
      ref("Idempotency-Key"),
    ]);
  });

  test("an operation has its full name, its feature's tag and a summary", async () => {
    const given = await operationOf((r) =>
      r.query("mug-shelf.show-all", { route: "GET /mugs", access: everyone, handler }),
    );
    expect(given).toMatchObject({
      operationId: "mugs.mug-shelf.show-all",
      summary: "Mug shelf: show all",
      tags: ["mugs"],
    });
  });
});

describe("the document", () => {
  test("has paths below the base path, and the title and version of its options", async () => {
    const list = (r: FeatureBuilder) =>
      r.query("mug.list", { route: "GET /", access: everyone, handler });
    const named = await documentOf(list, {
      basePath: "/api",
      openapi: { title: "Mugs", version: "2" },
    });
    expect(named.document).toMatchObject({
      openapi: "3.1.1",
      info: { title: "Mugs", version: "2" },
      servers: [{ url: "/api" }],
      tags: [{ name: "mugs", description: "The feature mugs." }],
    });
    expect(named.path).toBe("/");
    for (const openapi of [false, undefined, {}] as const) {
      const { document } = await documentOf(list, openapi === undefined ? {} : { openapi });
      expect(document).toMatchObject({
        info: { title: "API", version: "0.0.0" },
        servers: [{ url: "/" }],
      });
    }
  });

  test("lists a path once, with its first route's parameter names", async () => {
    const { paths } = await documentOf((r) => {
      const mug = { access: everyone, handler };
      r.query("mug.show", { route: "GET /mugs/:id/parts/:part", ...mug });
      const input = z.object({
        mug: z.string().max(9),
        number: z.coerce.number(),
        size: z.number(),
      });
      r.write("mug.turn", { route: "PUT /mugs/:mug/parts/:number", ...mug, input });
      r.query("mug.list", { route: "GET /mugs/:tag", ...mug });
    });
    expect(Object.keys(paths)).toEqual(["/mugs/{id}/parts/{part}", "/mugs/{tag}"]);
    expect(paths["/mugs/{id}/parts/{part}"]).toMatchObject({
      get: { parameters: expect.arrayContaining([inPath("id"), inPath("part")]) },
      put: {
        parameters: expect.arrayContaining([
          inPath("id", { type: "string", minLength: 1, maxLength: 9 }),
          inPath("part", { type: "number" }),
        ]),
      },
    });
  });

  test("leaves out handlers without a route", async () => {
    const { paths } = await documentOf((r) => r.query("mug.count", { handler }));
    expect(paths).toEqual({});
  });

  test("reports what it cannot describe, with handler and field", async () => {
    const { unsaid, operation } = await documentOf((r) =>
      r.query("mug.count", {
        route: "GET /mugs",
        access: everyone,
        output: z.object({ count: z.bigint() }),
        handler,
      }),
    );
    expect(unsaid).toMatchObject([{ where: "mugs.mug.count output: count", vendor: "zod" }]);
    expect(JSON.stringify(operation)).toContain('"x-keelson-unsaid"');
  });

  test("is the same for the same declarations", async () => {
    const tree = types({ node: { value: "string", "children?": "node[]" } }).export();
    const declare = (r: FeatureBuilder) => {
      r.query("tree.show", { route: "GET /tree", access: everyone, output: tree.node, handler });
      r.query("tree.list", {
        route: "GET /trees",
        access: everyone,
        output: tree.node.array(),
        handler,
      });
    };
    const [one, other] = [await documentOf(declare), await documentOf(declare)];
    expect(documentText(one.document)).toBe(documentText(other.document));
    const schemas = Object.keys(
      (one.document["components"] as unknown as { schemas: object }).schemas,
    );
    // Not the numbers that ArkType gives them, which depend on what else was declared before.
    expect(schemas.filter((name) => /[a-z]\d+$/.test(name))).toEqual([]);
  });
});
