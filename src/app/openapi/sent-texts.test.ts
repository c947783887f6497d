import { type } from "arktype";
import * as v from "valibot";
import { expect, test } from "vitest";
import { z } from "zod";
import { createSchemaReader } from "./json-schema.ts";
import { sentAsText } from "./request-parts.ts";

const route = { segments: [{ static: "mugs" }, { param: "id" }] };

/** The fields of an input that are marked. */
async function refusing(
  input: Parameters<ReturnType<typeof createSchemaReader>["read"]>[0],
  handler: object = { kind: "query" },
) {
  const isSentAsText = sentAsText(route, { kind: "write", body: "json", ...handler });
  const { properties } = await createSchemaReader().read(input, "input", "mug", isSentAsText);
  return Object.entries(Object(properties)).flatMap(([name, part]) =>
    "x-keelson-takes-text" in Object(part) ? [name] : [],
  );
}

test("a number or a boolean that accepts no text is marked where requests send texts", async () => {
  const input = z.object({
    id: z.int(),
    size: z.number().min(5).optional(),
    odd: z.number().gt(7).multipleOf(4),
    isNew: z.boolean(),
    kind: z.literal([1, 2]),
    one: z.literal(1),
    some: z.array(z.number()),
    either: z.union([z.boolean(), z.null()]),
    numbers: z.union([z.number().max(-5), z.number().min(5)]),
  });
  const all = ["id", "size", "odd", "isNew", "kind", "one", "some", "either", "numbers"];
  expect(await refusing(input)).toEqual(all);
  expect(await refusing(input, { body: "form" })).toEqual(all);
  expect(await refusing(input, {})).toEqual(["id"]);
  expect(await refusing(v.object({ size: v.number(), name: v.string() }))).toEqual(["size"]);
  expect(await refusing(type({ size: "number > 3", name: "string" }))).toEqual(["size"]);
});

test("a field that converts or accepts texts is not marked", async () => {
  const input = z.object({
    id: z.coerce.number().int().min(3),
    isNew: z.coerce.boolean(),
    isOld: z.stringbool(),
    word: z.string().transform(Number),
    kind: z.enum(["a", "b"]),
    either: z.union([z.number(), z.string()]),
    never: z.union([z.number(), z.literal("never")]),
    choice: z.union([z.boolean(), z.enum(["a", "b"])]),
    lists: z.array(z.any()),
    mixed: z.literal([1, "a"]),
    some: z.array(z.coerce.number()),
    texts: z.array(z.string()),
    pair: z.tuple([z.string(), z.string()]),
    odd: z.coerce.number().refine((size) => size % 2 === 1),
    nothing: z.null(),
  });
  expect(await refusing(input)).toEqual([]);
  expect(await refusing(z.union([input, z.object({ size: z.number() })]))).toEqual([]);
});

test("a schema that fails when probed marks none of its fields", async () => {
  const failing = () => {
    throw new Error("not now");
  };
  expect(await refusing(z.object({ size: z.number().refine(failing) }))).toEqual([]);
});
