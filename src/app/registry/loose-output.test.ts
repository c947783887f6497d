import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod/v3";
import { startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { FeatureBuilder } from "../features/feature-builder.ts";
import { buildServer } from "../server/server.ts";
import { looseAt } from "./loose-output.ts";

const open = z.looseObject({ a: z.string() });
const shut = z.object({ a: z.string() });
const tree = z.object({
  name: z.string(),
  get children(): never {
    throw new Error("the application's code");
  },
});
let deep: z.ZodType = open;
for (let level = 0; level < 40; level++) deep = z.object({ of: deep });

describe("zod", () => {
  test.each<[string, z.ZodType | z3.ZodType | mini.ZodMiniType, string]>([
    ["a loose object", open, "result"],
    ["passthrough", shut.passthrough(), "result"],
    ["loose", shut.loose(), "result"],
    ["a catchall", shut.catchall(z.string()), "result"],
    ["one that was extended", open.extend({ b: z.number() }), "result"],
    ["a loose member", z.object({ b: z.object({ c: open }) }), "b.c"],
    ["a member of one that was extended", shut.extend({ b: open }), "b"],
    ["a member of one that has been used", used(z.object({ b: open })), "b"],
    ["items", z.object({ items: z.array(open) }), "items.*"],
    ["items of a tuple", z.tuple([z.string(), open]), "*"],
    ["the rest of a tuple", z.tuple([z.string()], open), "*"],
    ["values of a record", z.record(z.string(), open), "*"],
    ["one of a union", z.union([shut, open]), "result"],
    [
      "one of a discriminated union",
      z.discriminatedUnion("k", [z.looseObject({ k: z.literal(1) })]),
      "result",
    ],
    ["a side of an intersection", z.intersection(shut, open), "result"],
    ["what is optional", z.object({ b: open.optional() }), "b"],
    ["what has a default", z.object({ b: open.default({ a: "" }).readonly().nullable() }), "b"],
    ["what a text is piped into", z.preprocess((value) => value, open), "result"],
    ["mini", mini.object({ b: mini.optional(mini.looseObject({})) }), "b"],
    ["zod 3 that passes through", z3.object({}).passthrough(), "result"],
    ["zod 3 with a catchall", z3.object({}).catchall(z3.string()), "result"],
  ])("reports %s", (_, schema, at) => {
    expect(looseAt(schema)).toBe(at);
  });

  test.each<[string, z.ZodType | z3.ZodType | mini.ZodMiniType]>([
    ["an object", shut],
    ["a strict object", z.strictObject({ a: z.string() })],
    ["any", z.any()],
    ["unknown members", z.object({ a: z.unknown() })],
    ["a record", z.record(z.string(), z.any())],
    ["a transform", open.transform((value) => value)],
    ["a custom type", z.custom<Date>()],
    ["a lazy schema", z.lazy(() => open)],
    ["a list that ends", z.tuple([z.string()])],
    ["mini", mini.object({ a: mini.string() })],
    ["zod 3", z3.object({ a: z3.string() })],
    ["a text of zod 3", z3.string()],
    ["what lies too deep", deep],
  ])("does not report %s", (_, schema) => {
    expect(looseAt(schema)).toBeUndefined();
  });

  test("calls no getters of the application", () => {
    expect(looseAt(tree)).toBeUndefined();
  });

  test("checks a recursive schema once", () => {
    const list = z.object({ more: z.string() });
    Object.defineProperty(list._zod.def.shape, "more", { value: list });
    expect(looseAt(list)).toBeUndefined();
  });
});

describe("valibot", () => {
  const loose = v.looseObject({ a: v.string() });
  test.each<[string, v.GenericSchema, string | undefined]>([
    ["an object", v.object({ a: v.string() }), undefined],
    ["a strict object", v.strictObject({ a: v.string() }), undefined],
    ["a loose object", loose, "result"],
    ["an object with a rest", v.objectWithRest({}, v.string()), "result"],
    ["an object whose rest is never", v.objectWithRest({ a: loose }, v.never()), "a"],
    ["a loose member", v.object({ b: v.optional(v.array(loose)) }), "b.*"],
    ["one of a union", v.union([v.string(), loose]), "result"],
    ["values of a record", v.record(v.string(), loose), "*"],
    ["items of a tuple", v.tuple([loose]), "*"],
    ["the rest of a tuple", v.tupleWithRest([v.string()], loose), "*"],
    [
      "a checked one",
      v.pipe(
        loose,
        v.check(() => true),
      ),
      "result",
    ],
    ["one that is piped into a shut one", v.pipe(loose, v.object({ a: v.string() })), undefined],
    ["one that a shut one is piped into", v.pipe(v.object({ a: v.string() }), loose), "result"],
    [
      "a transform",
      v.pipe(
        loose,
        v.transform((value) => value),
      ),
      undefined,
    ],
    [
      "a raw transform",
      v.pipe(
        loose,
        v.rawTransform(({ dataset }) => dataset.value),
      ),
      undefined,
    ],
    ["a lazy schema", v.lazy(() => loose), undefined],
    ["any", v.any(), undefined],
  ])("checks %s", (_, schema, at) => {
    expect(looseAt(schema)).toBe(at);
  });
});

describe("ArkType", () => {
  const open = type({ a: "string" });
  test.each<[string, type.Any, string | undefined]>([
    ["an object, by default", open, "result"],
    ["one that deletes", type({ "+": "delete", a: "string" }), undefined],
    ["one that refuses", type({ "+": "reject", "a?": "string" }), undefined],
    ["one that deletes at its top alone", type({ "+": "delete", "b?": { c: "number" } }), "b"],
    [
      "one that deletes deeply",
      type({ b: { c: "number" } }).onDeepUndeclaredKey("delete"),
      undefined,
    ],
    ["items", open.array(), "*"],
    ["items of a tuple", type(["string", { a: "string" }]), "*"],
    ["the rest of a tuple", type(["string", "...", open.array()]), "*"],
    ["one of a union", open.or("string"), "result"],
    ["a record", type("Record<string, number>"), undefined],
    ["values of a record", type({ "[string]": { a: "number" } }), "*"],
    ["a morph", open.pipe((value) => value), undefined],
    [
      "one that is piped into a shut one",
      open.pipe((value) => value, type({ "+": "delete", a: "string" })),
      undefined,
    ],
    ["one that is piped into an open one", type("string").pipe((a) => ({ a }), open), "result"],
    ["any object", type("object"), undefined],
    ["a text", type("string"), undefined],
  ])("checks %s", (_, schema, at) => {
    expect(looseAt(schema)).toBe(at);
  });
});

test("a schema of another vendor, or of an unknown form, is not reported as loose", () => {
  const validate = () => ({ value: 1 });
  const standard = (vendor: string) => ({ "~standard": { version: 1, vendor, validate } }) as const;
  const hostile = (vendor: string) =>
    new Proxy(standard(vendor), {
      getOwnPropertyDescriptor: () => {
        throw new Error("hostile");
      },
    });

  for (const vendor of ["effect", "zod", "valibot", "arktype"])
    expect(looseAt(standard(vendor))).toBeUndefined();
  for (const vendor of ["zod", "valibot", "arktype"])
    expect(looseAt(hostile(vendor))).toBeUndefined();
});

/** zod keeps a shape once it was needed. */
function used<Schema extends z.ZodType>(schema: Schema): Schema {
  schema.safeParse({});
  return schema;
}

async function warnedOf(declare: (r: FeatureBuilder) => void): Promise<unknown[]> {
  const app = await startTestApp(buildServer({ features: [defineFeature("items", declare)] }));
  try {
    return app.logs
      .filter(({ msg }) => msg === "output.loose")
      .map(({ level, handlers }) => [level, handlers]);
  } finally {
    await app.close();
  }
}

test("a starting server names the handlers whose output schema removes no fields, and where", async () => {
  const handler = () => ({ a: {} });
  const named = await warnedOf((r) => {
    r.query("item.loose", { output: z.looseObject({}), handler });
    r.write("item.inside", { output: z.object({ a: z.looseObject({}) }), handler });
    r.query("item.shut", { output: z.object({ a: z.object({}) }), handler });
    r.query("item.none", { handler });
  });

  expect(named).toEqual([
    [
      "warn",
      [
        { name: "items.item.loose", at: "result" },
        { name: "items.item.inside", at: "a" },
      ],
    ],
  ]);
});

test("many handlers are named in several lines, and none in no line", async () => {
  const many = await warnedOf((r) => {
    for (let index = 0; index < 250; index++)
      r.query(`item.show-${index}`, { output: z.looseObject({}), handler: () => ({}) });
  });

  expect(many).toEqual(
    [100, 100, 50].map((length) => [
      "warn",
      expect.toSatisfy((names: unknown[]) => names.length === length),
    ]),
  );
  expect(await warnedOf((r) => void r.query("item.none", { handler: () => 1 }))).toEqual([]);
});
