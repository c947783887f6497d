import { describe, expect, test } from "vitest";
import { createComponents } from "./components.ts";

const place = "#/components/schemas/";
const text = { type: "string" };

describe("components from a schema's own definitions", () => {
  test("keep their names as far as components allow them", () => {
    const components = createComponents({});
    const schema = { $ref: "#/$defs/a~1b%20c", $defs: { "a/b c": text } };
    expect(components.embed(schema, "mugs.mug.show.output")).toEqual({ $ref: `${place}a_b_c` });
    expect(components.reachedFrom({ $ref: `${place}a_b_c` })).toEqual({ a_b_c: text });
  });

  test("are shared when equal, and renamed when another has the same name", () => {
    const components = createComponents({ Mug: { type: "object" } });
    const embed = (definition: object) =>
      components.embed({ $ref: "#/$defs/Mug", $defs: { Mug: definition } }, "x");
    expect(embed(text)).toEqual({ $ref: `${place}Mug.2` });
    expect(embed(text)).toEqual({ $ref: `${place}Mug.2` });
    expect(embed({ type: "number" })).toEqual({ $ref: `${place}Mug.3` });
  });

  test("include definitions that a library numbers, under the name of the whole", () => {
    const components = createComponents({});
    const embedded = components.embed(
      { items: { $ref: "#/$defs/__schema0" }, $defs: { __schema0: text } },
      "mugs.list",
    );
    expect(embedded).toEqual({ items: { $ref: `${place}mugs.list.part` } });
  });

  test("include a recursive schema", () => {
    const components = createComponents({});
    const tree = {
      type: "object",
      properties: { left: { $ref: "#" }, first: { $ref: "#/properties/left" } },
    };
    const embedded = components.embed(tree, "tree");
    expect(embedded).toEqual({ $ref: `${place}tree` });
    expect(components.resolve(embedded)).toEqual({
      type: "object",
      properties: {
        left: { $ref: `${place}tree` },
        first: { $ref: `${place}tree/properties/left` },
      },
    });
  });

  test("include the definitions they refer to, also in cycles", () => {
    const components = createComponents({});
    const $defs = { A: { items: { $ref: "#/$defs/B" } }, B: { items: { $ref: "#/$defs/A" } } };
    const embedded = components.embed({ $ref: "#/$defs/A", $defs }, "x");
    expect(components.reachedFrom(embedded)).toEqual({
      A: { items: { $ref: `${place}B` } },
      B: { items: { $ref: `${place}A` } },
    });
  });
});

test("report a missing definition", () => {
  const components = createComponents({});
  const embedded = components.embed({ $ref: "#/$defs/Gone" }, "x");
  expect(components.resolve(embedded)).toMatchObject({
    "x-keelson-unsaid": "its library defines no Gone",
  });
});

test("leave external references unchanged", () => {
  const components = createComponents({});
  expect(components.embed({ $ref: "https://example.com/mug.json" }, "x")).toEqual({
    $ref: "https://example.com/mug.json",
  });
  expect(components.resolve({ $ref: "https://example.com/mug.json", title: "Mug" })).toEqual({
    title: "Mug",
  });
});
