import { Ajv2020 } from "ajv/dist/2020.js";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { createSchemaReader, importFrom, type JsonSchema } from "./json-schema.ts";

async function read(
  schema: Parameters<ReturnType<typeof createSchemaReader>["read"]>[0],
  side: "input" | "output" = "output",
) {
  const reader = createSchemaReader();
  const said = await reader.read(schema, side, "files.file.show output");
  return { said, unsaid: reader.unsaid };
}

const text = { type: "string" };
const date = { type: "string", format: "date-time" };
const object = (properties: JsonSchema, more: JsonSchema = {}) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  ...more,
});

describe("reads the schemas of each library, without $schema", () => {
  const closed = { additionalProperties: false };
  test.each([
    ["zod", z.object({ a: z.string() }), object({ a: text }), object({ a: text }, closed)],
    [
      "zod/mini",
      mini.object({ a: mini.string() }),
      object({ a: text }),
      object({ a: text }, closed),
    ],
    ["valibot", v.object({ a: v.string() }), object({ a: text }), object({ a: text })],
    ["ArkType", type({ a: "string" }), object({ a: text }), object({ a: text })],
  ])("%s", async (_, schema, input, output) => {
    expect(await read(schema, "input")).toEqual({ said: input, unsaid: [] });
    expect(await read(schema, "output")).toEqual({ said: output, unsaid: [] });
  });

  test("any other library, through Standard JSON Schema", async () => {
    const converter = {
      input: () => ({ $schema: "https://json-schema.org/draft/2020-12/schema", type: "integer" }),
      output: () => text,
    };
    const schema = {
      "~standard": {
        version: 1,
        vendor: "own",
        validate: (value: unknown) => ({ value }),
        jsonSchema: converter,
      },
    } as const;
    expect((await read(schema, "input")).said).toEqual({ type: "integer" });
    expect((await read(schema)).said).toEqual(text);
  });
});

describe("describes a Date as a text in outputs and reports it in inputs", () => {
  test.each([
    ["zod", z.object({ at: z.date() }), "files.file.show output: at"],
    ["zod/mini", mini.object({ at: mini.date() }), "files.file.show output: at"],
    ["valibot", v.object({ at: v.date() }), "files.file.show output: at"],
    ["ArkType", type({ at: "Date" }), "files.file.show output: at"],
  ])("%s", async (vendor, schema, where) => {
    const { said, unsaid } = await read(schema);
    expect(said).toMatchObject({ properties: { at: date } });
    expect(unsaid).toEqual([]);
    const input = await read(schema, "input");
    expect(input.said).toMatchObject({
      properties: { at: { "x-keelson-unsaid": expect.any(String) } },
    });
    expect(input.unsaid).toMatchObject([
      {
        where,
        vendor: vendor.toLowerCase().replace("/mini", ""),
        why: expect.stringContaining("no Date arrives"),
      },
    ]);
  });

  test("unless the schema converts it", async () => {
    expect((await read(z.coerce.date(), "input")).said).toEqual(date);
  });
});

describe("reports types without a JSON Schema, never as an empty schema", () => {
  class Upload {}
  const length = (value: string) => value.length;
  test.each([
    ["zod's bigint", z.object({ a: z.bigint() }), "zod's bigint has no JSON Schema"],
    ["zod's map", z.object({ a: z.map(z.string(), z.string()) }), "zod's map"],
    ["zod's class", z.object({ a: z.instanceof(Upload) }), "zod's custom"],
    ["zod's conversion", z.object({ a: z.string().transform(length) }), "add .pipe(schema)"],
    ["a bigint of zod's literal", z.object({ a: z.literal(1n) }), "a literal is a bigint"],
    ["zod/mini's set", mini.object({ a: mini.set(mini.string()) }), "zod's set"],
    [
      "valibot's map",
      v.object({ a: v.map(v.string(), v.string()) }),
      'The "map" schema cannot be converted',
    ],
    [
      "valibot's conversion",
      v.object({ a: v.pipe(v.string(), v.transform(length)) }),
      "add a schema behind it",
    ],
    ["ArkType's class", type({ a: type.instanceOf(Upload) }), "ArkType's proto has no JSON Schema"],
    ["a bigint of ArkType's unit", type({ a: type.unit(1n) }), "a unit is a value"],
    ["ArkType's conversion", type({ a: type("string").pipe(length) }), "add .to(type)"],
  ])("%s", async (_, schema, why) => {
    const { said, unsaid } = await read(schema);
    expect(said).toMatchObject({
      properties: {
        a: { "x-keelson-unsaid": expect.any(String), description: expect.stringContaining(why) },
      },
    });
    expect(unsaid).toMatchObject([
      { where: "files.file.show output: a", why: expect.stringContaining(why) },
    ]);
  });

  test("but describes an unknown type as any value", async () => {
    for (const schema of [z.unknown(), mini.any(), v.unknown(), type("unknown")]) {
      expect(await read(schema)).toEqual({ said: {}, unsaid: [] });
    }
    expect((await read(type({ a: "unknown", b: "string.numeric.parse" }))).said).toMatchObject({
      properties: { a: {}, b: { type: "number" } },
    });
  });

  test("but uses the metadata of the schema", async () => {
    const schema = z.object({
      a: z.instanceof(Upload).meta({ type: "string", description: "a name" }),
    });
    const { said, unsaid } = await read(schema);
    expect(said).toMatchObject({ properties: { a: { type: "string", description: "a name" } } });
    expect(unsaid).toEqual([]);
  });

  test("but describes the input of a conversion", async () => {
    for (const schema of [
      z.string().transform(length),
      v.pipe(v.string(), v.transform(length)),
      type("string").pipe(length),
    ]) {
      expect(await read(schema, "input")).toEqual({ said: text, unsaid: [] });
    }
  });

  test("and describes undefined as a schema that nothing fits", async () => {
    for (const schema of [z.void(), z.undefined(), v.void(), v.undefined(), type("undefined")]) {
      expect(await read(schema)).toEqual({ said: { not: {} }, unsaid: [] });
    }
    expect((await read(z.nan())).said).toEqual({ type: "null" });
    expect((await read(z.nan(), "input")).said).toEqual({ not: {} });
  });

  test("says what to do for a library without JSON Schema", async () => {
    const validate = (value: unknown) => ({ value });
    const schemas = ["own", "zod"].map((vendor) => ({
      "~standard": { version: 1 as const, vendor, validate },
    }));
    const [own, zod3] = await Promise.all(schemas.map((schema) => read(schema)));
    expect(own?.unsaid[0]?.why).toBe(
      'own has no Standard JSON Schema; give it ["~standard"].jsonSchema',
    );
    expect(zod3?.unsaid[0]?.why).toBe("zod 3 cannot produce JSON Schema; use zod 4");
  });

  test("names a library that throws, with its message", async () => {
    const fail = () => {
      throw "no target";
    };
    const validate = (value: unknown) => ({ value });
    const standard = {
      version: 1 as const,
      vendor: "own",
      validate,
      jsonSchema: { input: fail, output: fail },
    };
    expect((await read({ "~standard": standard })).unsaid).toEqual([
      { where: "files.file.show output", vendor: "own", why: "no target" },
    ]);
  });
});

describe("never forbids values that the library accepts", () => {
  test("leaves out a pattern with flags", async () => {
    expect((await read(z.string().regex(/^a/i))).said).toEqual(text);
    expect((await read(z.string().regex(/^a/i).regex(/b$/).regex(/c/i))).said).toEqual({
      ...text,
      allOf: [{ pattern: "b$" }],
    });
    expect((await read(z.string().regex(/^a/))).said).toEqual({ ...text, pattern: "^a" });
    expect((await read(v.pipe(v.string(), v.regex(/^a/i)))).said).toEqual(text);
    expect((await read(type(/^a/i))).said).toEqual(text);
    expect((await read(type({ a: /^a/i, b: /^b/ }), "input")).said).toMatchObject({
      properties: { a: text, b: { ...text, pattern: "^b" } },
    });
  });

  describe("an intersection has the fields of both sides", () => {
    const a = z.object({ a: z.string() });
    const b = z.object({ b: z.string() });
    const named = a.meta({ id: "A" });
    const both = { a: "1", b: "2" };
    const strict = { a: z.strictObject({ a: z.string() }), b: z.strictObject({ b: z.string() }) };
    const known = z.union([a, z.object({ c: z.string() })]);
    test.each([
      ["of two objects", a.and(b), both],
      ["of one that has a name", named.and(b), both],
      ["of one that describes itself", a.describe("first").and(b), both],
      ["of strict ones", strict.a.and(strict.b), both],
      ["of strict ones with a name", strict.a.meta({ id: "S" }).and(strict.b), both],
      ["of alternatives", z.union([named, z.object({ c: z.string() })]).and(b), both],
      ["of two times alternatives", known.and(z.union([b, z.object({ d: z.string() })])), both],
      ["of a strict one and a record", strict.a.and(z.record(z.string(), z.string())), both],
      [
        "inside of another",
        z.object({ in: z.array(named.and(b).and(z.object({ c: z.string() }).meta({ id: "C" }))) }),
        { in: [{ ...both, c: "3" }] },
      ],
      [
        "of zod/mini",
        mini.intersection(mini.object({ a: mini.string() }), mini.object({ b: mini.string() })),
        both,
      ],
    ])("%s", async (_, schema, value) => {
      for (const side of ["input", "output"] as const) {
        const { said } = await read(schema, side);
        expect(
          new Ajv2020({ strictTypes: false }).validate(said, value),
          JSON.stringify(said),
        ).toBe(true);
      }
    });

    test("of a recursive schema", async () => {
      interface Tree {
        readonly a: string;
        readonly child?: (Tree & { readonly b: string }) | undefined;
      }
      const tree: z.ZodType<Tree> = z
        .object({
          a: z.string(),
          get child() {
            return tree.and(z.object({ b: z.string() })).optional();
          },
        })
        .meta({ id: "Tree" });
      const { said } = await read(tree);
      const ajv = new Ajv2020({ strictTypes: false });
      expect(
        ajv.validate(said, { a: "1", child: { ...both, child: both } }),
        JSON.stringify(said),
      ).toBe(true);
      expect(ajv.validate(said, { a: "1", child: { ...both, child: { ...both, c: "3" } } })).toBe(
        false,
      );
    });

    test("of a schema with itself, and terminates", async () => {
      interface Nested {
        readonly a?: string | undefined;
      }
      const nested: z.ZodType<Nested> = z
        .union([z.object({ b: z.string() }).and(z.lazy((): z.ZodType<Nested> => nested)), a])
        .meta({ id: "Nested" });
      expect((await read(nested, "input")).unsaid).toEqual([]);
      expect((await read(nested)).unsaid).toEqual([]);
    });

    test("and no others when both are closed", async () => {
      const { said } = await read(named.and(b.describe("second")));
      expect(new Ajv2020({ strictTypes: false }).validate(said, { ...both, more: true })).toBe(
        false,
      );
      expect(
        new Ajv2020({ strictTypes: false }).validate(
          (await read(named.and(z.looseObject({})))).said,
          { a: "1", more: true },
        ),
      ).toBe(true);
    });
  });

  test("states a format only when its RFC accepts what the library accepts", async () => {
    expect((await read(z.iso.duration())).said).toEqual({ ...text, pattern: expect.any(String) });
    expect((await read(v.pipe(v.string(), v.isoTime()))).said).toEqual({
      ...text,
      pattern: String.raw`^(?:0\d|1\d|2[0-3]):[0-5]\d$`,
    });
    expect((await read(v.pipe(v.string(), v.isoDateTime()))).said).toEqual({
      ...text,
      pattern: expect.any(String),
    });
    expect((await read(v.pipe(v.string(), v.isoTimestamp()))).said).toEqual(date);
  });

  test("a field that may be undefined is optional, since undefined is not sent", async () => {
    const optional = async (
      schema: Parameters<typeof read>[0],
      side: "input" | "output" = "output",
    ) => (await read(schema, side)).said["required"];
    const some = z.object({
      a: z.any(),
      b: z.string().or(z.undefined()),
      c: z.undefined(),
      d: z.unknown().describe("all"),
      e: z.string(),
    });
    expect(await optional(some)).toEqual(["e"]);
    expect(await optional(some, "input")).toEqual(["a", "b", "c", "d", "e"]);
    expect(await optional(z.object({ a: z.any() }))).toBeUndefined();
    expect(await optional(z.object({ a: z.bigint() }))).toEqual(["a"]);
    expect(
      await optional(
        v.object({ a: v.any(), b: v.union([v.string(), v.undefined()]), e: v.string() }),
      ),
    ).toEqual(["e"]);
    const own = { version: 1, vendor: "own", validate: (value: unknown) => ({ value }) } as const;
    const json = () => ({ type: "object", properties: {}, required: ["a"] });
    const schema = { "~standard": { ...own, jsonSchema: { input: json, output: json } } };
    expect(await optional(schema)).toEqual(["a"]);
    expect(await optional(type({ a: "unknown", b: "string | undefined", e: "string" }))).toEqual([
      "e",
    ]);
  });

  test("a field that is readonly in the code is not readOnly, since it is sent", async () => {
    expect((await read(z.object({ a: z.array(z.string()).readonly() }), "input")).said).toEqual(
      object({ a: { type: "array", items: text } }),
    );
    expect((await read(mini.readonly(mini.string()))).said).toEqual(text);
    expect((await read(z.string().meta({ readOnly: true }))).said).toEqual({
      ...text,
      readOnly: true,
    });
  });

  test("an empty tuple has no empty list of schemas, which JSON Schema forbids", async () => {
    for (const schema of [z.tuple([]), v.strictTuple([]), type([])]) {
      expect((await read(schema)).said).not.toHaveProperty("prefixItems");
      expect(new Ajv2020().validate((await read(schema)).said, [1])).toBe(false);
    }
  });

  test("accepts an IPv6 address that ends in IPv4 notation", async () => {
    expect((await read(z.ipv6())).said).toEqual({ ...text, format: "ipv6" });
    expect((await read(z.string().check(z.ipv6()))).said).toEqual({ ...text, format: "ipv6" });
    expect((await read(z.cidrv6())).said).toEqual({ ...text, format: "cidrv6" });
    expect((await read(z.cidrv6().regex(/^a/))).said).toEqual({
      ...text,
      allOf: [{ pattern: "^a" }],
    });
  });

  test("writes no empty list when all patterns have flags", async () => {
    expect((await read(z.string().regex(/^a/i).regex(/b/i))).said).toEqual(text);
  });

  test("leaves out a pattern with the v flag, which means something else without it", async () => {
    expect((await read(z.string().regex(/^[\w&&\d]$/v))).said).toEqual(text);
    expect((await read(type(/^[\w&&\d]$/v))).said).toEqual(text);
  });

  test.each([
    ["an escape that none needs", String.raw`^\d+\-\d+\@$`, "", String.raw`^\d+-\d+@$`],
    ["an escape in a set", String.raw`^[\_\-\]"]\[\-$`, "", String.raw`^[_\-\]"]\[-$`],
    [
      "a dash behind a class",
      String.raw`^[\w-.][\da-z-]\d-$`,
      "",
      String.raw`^[\w\-.][\da-z-]\d-$`,
    ],
    ["one that is of Unicode mode", String.raw`^[\d-]\p{L}$`, "u", String.raw`^[\d-]\p{L}$`],
    ["one that cannot be said", String.raw`^a{1\,2}\-$`, "", undefined],
  ])(
    "rewrites a pattern for Unicode mode, which validators use: %s",
    async (_, source, flags, said) => {
      const pattern = new RegExp(source, flags);
      const expected = said === undefined ? text : { ...text, pattern: said };
      expect((await read(z.string().regex(pattern))).said).toEqual(expected);
      expect((await read(z.string().regex(pattern).max(9).regex(/b/))).said).toEqual(
        said === undefined
          ? { ...text, maxLength: 9, allOf: [{ pattern: "b" }] }
          : { ...text, maxLength: 9, allOf: [{ pattern: said }, { pattern: "b" }] },
      );
      if (flags === "")
        expect((await read(v.pipe(v.string(), v.regex(pattern)))).said).toEqual(expected);
      expect((await read(type(pattern))).said).toEqual(expected);
    },
  );

  test("leaves out a check in code", async () => {
    expect((await read(z.string().refine(() => true))).said).toEqual(text);
    expect(
      (
        await read(
          v.pipe(
            v.string(),
            v.trim(),
            v.check(() => true),
          ),
        )
      ).said,
    ).toEqual(text);
    expect((await read(type("string").narrow(() => true))).said).toEqual(text);
  });
});

describe("gives the same result for the same declarations", () => {
  test("leaves out a generated default", async () => {
    let count = 0;
    const next = () => String(++count);
    expect((await read(z.string().default(next), "input")).said).toEqual(text);
    expect((await read(z.string().default("a"), "input")).said).toEqual({ ...text, default: "a" });
    expect(
      (
        await read(
          z.number().default(() => Date.now()),
          "input",
        )
      ).said,
    ).toEqual({ type: "number" });
    expect((await read(v.optional(v.string(), next), "input")).said).toEqual(text);
    expect((await read(type({ at: ["Date", "=", () => new Date()] }))).said).toMatchObject({
      properties: { at: date },
    });
  });

  test("leaves out a generated default that several descriptions share", async () => {
    const now = z.number().default(() => Date.now());
    const given = z.object({ from: now.describe("From"), until: now.meta({ title: "Until" }) });
    expect((await read(given, "input")).said).toEqual({
      type: "object",
      properties: {
        from: { type: "number", description: "From" },
        until: { type: "number", title: "Until" },
      },
    });
  });
});

test("schemas read in parallel wait once for a later time, which shows generated defaults", async () => {
  const wait = vi.spyOn(Atomics, "wait");
  const reader = createSchemaReader();
  const given = z.object({ a: z.string().default("a"), b: z.number().default(1) });
  const generated = z.object({ at: z.number().default(() => Date.now()) });

  const said = await Promise.all(
    [given, generated].map((schema) => reader.read(schema, "input", "files.file.show input")),
  );

  expect(said).toEqual([
    {
      type: "object",
      properties: { a: { ...text, default: "a" }, b: { type: "number", default: 1 } },
    },
    { type: "object", properties: { at: { type: "number" } } },
  ]);
  expect(wait).toHaveBeenCalledTimes(1);
});

test("a default is read although a test has frozen the clock", {
  timeout: 20_000,
}, async () => {
  let calls = 0;
  const now = vi.spyOn(Date, "now").mockImplementation(() => {
    if (++calls > 100_000) throw new Error("waits for the clock");
    return 1;
  });
  const { said } = await read(z.string().default("a"), "input");
  now.mockRestore();

  expect(said).toEqual({ ...text, default: "a" });
});

test("schemas that cannot be described are listed in the order of reading", async () => {
  const reader = createSchemaReader();
  await Promise.all([
    reader.read(z.object({ a: z.string().default("a"), b: z.bigint() }), "output", "first"),
    reader.read(z.bigint(), "output", "second"),
  ]);

  expect(reader.unsaid.map(({ where }) => where)).toEqual(["first: b", "second"]);
});

test("a missing or outdated package is named with the command that installs it", async () => {
  await expect(importFrom("no-such-package", "a", "/")).rejects.toThrow(
    "no-such-package is not installed in the application; npm install no-such-package",
  );
  await expect(importFrom("zod", "toYaml", process.cwd())).rejects.toThrow(
    "the application's zod has no toYaml",
  );
  // From where keelson is, where the application's directory has none.
  expect((await createSchemaReader({ from: "/" }).read(v.string(), "input", "x"))["type"]).toBe(
    "string",
  );
});

test("keeps the rest of an ArkType schema when a part has no JSON Schema", async () => {
  expect((await read(type("/^a/ & /b$/"))).said).toMatchObject({ type: "string" });
  expect((await read(type("string[]").narrow(() => true))).said).toEqual({
    type: "array",
    items: text,
  });
  const mug = type({ id: "string" });
  expect(await read(type("string").pipe((id) => ({ id }), mug))).toEqual({
    said: object({ id: text }),
    unsaid: [],
  });
  const { unsaid } = await read(
    type({
      list: type("string")
        .pipe((value) => value.length)
        .array(),
    }),
  );
  expect(unsaid).toMatchObject([{ where: "files.file.show output: list.items" }]);
});

test("reports the same missing type once", async () => {
  const reader = createSchemaReader();
  await reader.read(z.bigint(), "input", "a");
  await reader.read(z.bigint(), "input", "a");
  expect(reader.unsaid).toHaveLength(1);
});
