import { describe, expect, test } from "vitest";
import { noTextMark } from "../../app/openapi/schema.ts";
import { differences } from "./schema-comparison.ts";
import type { SchemaNode } from "./shape.ts";
import { isRefusing } from "./shape-differences.ts";

const text = { type: "string" };
const number = { type: "number" };
const tree = {
  type: "object",
  properties: { v: number, kids: { type: "array", items: { $ref: "#" } } },
  required: ["v"],
};
const only = (properties: Record<string, SchemaNode>, more: object = {}) => ({
  type: "object",
  properties,
  ...more,
});
const branch = (value: unknown, more: Record<string, SchemaNode> = {}) =>
  only({ by: { const: value }, ...more }, { required: ["by"] });

const deep = (levels: number, value: string): SchemaNode =>
  levels === 0 ? branch(value) : only({ of: deep(levels - 1, value) }, { required: ["of"] });
const operator = (name: string): SchemaNode =>
  only({ arg: { $ref: "#" }, op: { const: name } }, { required: ["arg", "op"] });

describe("a difference has its path and kind:", () => {
  test.each<[string, SchemaNode, SchemaNode, string[]]>([
    [
      "anything and nothing",
      {},
      false,
      [
        "null|changed-type",
        "boolean|changed-type",
        "number|changed-type",
        "string|changed-type",
        "array|changed-type",
        "object|changed-type",
      ],
    ],
    ["nothing, as undefined is said", { not: {} }, text, []],
    ["nothing, said of something", text, { not: true }, ["string|changed-type"]],
    ["nothing and anything", false, {}, []],
    ["anything, said in two ways", true, {}, []],
    ["another type", text, number, ["string|changed-type"]],
    ["a type less", { type: ["string", "null"] }, text, ["null|type"]],
    ["whole numbers", number, { type: "integer" }, ["number|type"]],
    [
      "whole numbers by their multiples",
      { type: "number", multipleOf: 2 },
      { type: "integer" },
      [],
    ],
    ["numbers of which whole ones are some", { type: "integer" }, number, []],
    ["other multiples", { type: "integer", multipleOf: 4 }, { type: "integer", multipleOf: 2 }, []],
    [
      "multiples that are none of the others",
      { type: "integer", multipleOf: 2 },
      { type: "integer", multipleOf: 4 },
      ["other|multiple-of"],
    ],
    [
      "parts of one",
      { ...number, multipleOf: 0.5 },
      { ...number, multipleOf: 0.25 },
      ["other|multiple-of"],
    ],
    [
      "first multiples",
      { type: "number" },
      { type: "number", multipleOf: 4 },
      ["none|multiple-of"],
    ],
    ["a higher minimum", { ...number, minimum: 1 }, { ...number, minimum: 2 }, ["number|least"]],
    ["a lower minimum", { ...number, minimum: 2 }, { ...number, minimum: 1 }, []],
    [
      "a minimum that is out",
      { ...number, minimum: 1 },
      { ...number, exclusiveMinimum: 1 },
      ["number|least"],
    ],
    ["a minimum that is in", { ...number, exclusiveMinimum: 1 }, { ...number, minimum: 1 }, []],
    [
      "two minima",
      { ...number, minimum: 2 },
      { ...number, minimum: 1, exclusiveMinimum: 2 },
      ["number|least"],
    ],
    ["a lower maximum", { ...number, maximum: 2 }, { ...number, maximum: 1 }, ["number|most"]],
    [
      "a maximum that is out",
      { ...number, maximum: 1 },
      { ...number, exclusiveMaximum: 1 },
      ["number|most"],
    ],
    ["two maxima", { ...number, maximum: 2 }, { ...number, maximum: 2, exclusiveMaximum: 3 }, []],
    ["a first minimum", number, { ...number, minimum: 0 }, ["number|least"]],
    ["more characters", text, { ...text, minLength: 1 }, ["string|least"]],
    ["fewer characters", text, { ...text, maxLength: 9 }, ["string|most"]],
    ["a first pattern", text, { ...text, pattern: "a" }, ["none|pattern"]],
    ["another pattern", { ...text, pattern: "a" }, { ...text, pattern: "b" }, ["other|pattern"]],
    [
      "one of two patterns",
      { ...text, allOf: [{ pattern: "a" }, { pattern: "b" }] },
      { ...text, pattern: "b" },
      [],
    ],
    ["a first format", text, { ...text, format: "email" }, ["none|format"]],
    ["a value less", { enum: ["a", "b"] }, { enum: ["a"] }, ["string|value"]],
    ["a value of another type less", { enum: ["a", 1] }, { enum: ["a"] }, ["number|type"]],
    ["values of all texts", text, { enum: ["a", 1] }, ["string|values"]],
    ["a text of values", { enum: ["a", "b"] }, text, []],
    [
      "values that are too long",
      { enum: ["a", "bcd"] },
      { ...text, maxLength: 2 },
      ["string|value"],
    ],
    ["letters of two units", { const: "\u{1f600}" }, { ...text, maxLength: 1 }, []],
    ["values by a pattern", { enum: ["a", "b"] }, { ...text, pattern: "^a$" }, ["string|value"]],
    [
      "values by a pattern that is none",
      { const: "a" },
      { ...text, pattern: "(" },
      ["string|cannot-tell"],
    ],
    ["values by a format", { const: "a" }, { ...text, format: "email" }, ["string|cannot-tell"]],
    [
      "values that are not sure",
      { const: "a" },
      { const: "a", format: "email" },
      ["string|cannot-tell"],
    ],
    [
      "values of which some are not sure",
      { ...text, format: "email", enum: ["a"] },
      { const: "a" },
      [],
    ],
    ["values that no bound lets in", { enum: [1, 5], maximum: 2 }, { const: 1 }, []],
    ["objects as values", { const: { a: [1, { b: 2 }] } }, { const: { a: [1, { b: 2 }] } }, []],
    [
      "objects as values in a schema",
      { const: { a: 1, b: "x" } },
      only({ a: number, b: number }),
      ["object|value"],
    ],
    [
      "objects as values with a name more",
      { const: { a: 1 } },
      only({}, { additionalProperties: false }),
      ["object|value"],
    ],
    [
      "objects as values without a name",
      { const: {} },
      only({}, { required: ["a"] }),
      ["object|value"],
    ],
    [
      "objects as values with other names",
      { const: { a: 1 } },
      { propertyNames: { const: "b" } },
      ["object|value"],
    ],
    ["lists as values", { const: [1, 1] }, { type: "array", uniqueItems: true }, ["array|value"]],
    [
      "lists as values, each apart",
      { const: [1, 2] },
      { type: "array", uniqueItems: true, prefixItems: [number], items: number },
      [],
    ],
    [
      "values by a rule of both",
      { enum: [true, "a"], not: { const: 1 } },
      { enum: [true, "a"], not: { const: 1 }, title: "A" },
      [],
    ],
    [
      "values by a rule of parts",
      { const: { a: "x" }, properties: { a: { format: "f" } } },
      { const: { a: "x" }, properties: { a: { format: "g" } } },
      ["object|cannot-tell"],
    ],
    ["both truths", { enum: [true, false, null] }, { type: ["boolean", "null"] }, []],
    ["one of the truths", { type: "boolean" }, { const: true }, ["boolean|value"]],
    ["a property less", only({ a: text }), only({}), ["a only-from"]],
    ["a property more", only({}), only({ a: text }), ["a only-to"]],
    [
      "a property more that has to be there",
      only({}),
      only({ a: text }, { required: ["a"] }),
      ["a unnamed|required"],
    ],
    [
      "a property that has to be there now",
      only({ a: text }),
      only({ a: text }, { required: ["a"] }),
      ["a named|required"],
    ],
    [
      "a property that need not be there now",
      only({ a: text }, { required: ["a"] }),
      only({ a: text }),
      [],
    ],
    [
      "a property that is refused",
      only({ a: text }),
      only({}, { additionalProperties: false }),
      ["a named", "* unnamed"],
    ],
    ["a property that there never was", only({ a: false }), only({}), []],
    [
      "a property of all others",
      only({ a: text }),
      only({}, { additionalProperties: number }),
      [
        "a string|changed-type",
        "* null|type",
        "* boolean|type",
        "* string|type",
        "* array|type",
        "* object|type",
      ],
    ],
    [
      "all others, by name",
      only({}, { additionalProperties: number }),
      only({ a: text }),
      ["a number|changed-type"],
    ],
    [
      "all others refused, by name",
      only({}, { additionalProperties: false }),
      only({ a: text }),
      ["a only-to"],
    ],
    [
      "all others",
      only({}, { additionalProperties: text }),
      only({}, { additionalProperties: { ...text, maxLength: 1 } }),
      ["* string|most"],
    ],
    ["all others, said or not", only({}, { additionalProperties: true }), only({}), []],
    [
      "a part of a part",
      only({ a: only({ b: text }) }),
      only({ a: only({ b: number }) }),
      ["a.b string|changed-type"],
    ],
    [
      "other names",
      only({ ab: text }, { additionalProperties: false }),
      only({ ab: text }, { propertyNames: { maxLength: 1 } }),
      ["names"],
    ],
    [
      "other names of others",
      only({}, { additionalProperties: text }),
      only({}, { additionalProperties: text, propertyNames: { maxLength: 1 } }),
      ["names"],
    ],
    [
      "names that fit",
      only({ a: text }, { additionalProperties: false }),
      only({ a: text }, { propertyNames: { maxLength: 1 } }),
      [],
    ],
    [
      "names that are texts anyway",
      only({}),
      only({}, { propertyNames: { type: ["string", "null"] } }),
      [],
    ],
    [
      "more properties",
      only({ a: text }, { required: ["a"] }),
      only({ a: text }, { minProperties: 1 }),
      [],
    ],
    [
      "even more properties",
      only({ a: text }, { required: ["a"] }),
      only({ a: text }, { minProperties: 2 }),
      ["object|least"],
    ],
    [
      "fewer properties",
      only({ a: text }),
      only({ a: text }, { maxProperties: 1 }),
      ["object|most"],
    ],
    [
      "fewer properties than there can be",
      only({ a: text }, { additionalProperties: false }),
      only({ a: text }, { maxProperties: 1 }),
      [],
    ],
    [
      "fewer than there may be",
      only({ a: text }, { additionalProperties: false, maxProperties: 3 }),
      only({ a: text }, { maxProperties: 0 }),
      ["object|most"],
    ],
    [
      "names by a pattern",
      only({}, { patternProperties: { "^x": text } }),
      only({}, { patternProperties: { "^x": number } }),
      ["other|cannot-tell"],
    ],
    [
      "names by the same pattern",
      only({ a: text }, { patternProperties: { "^x": text } }),
      only({ a: { ...text, title: "A" } }, { patternProperties: { "^x": text } }),
      [],
    ],
    [
      "names by a pattern, and no others",
      only({}, { patternProperties: { "^x": {} } }),
      only({}, { patternProperties: { "^x": {} }, additionalProperties: false }),
      ["other|cannot-tell"],
    ],
    [
      "items",
      { type: "array", items: text },
      { type: "array", items: number },
      ["[] string|changed-type"],
    ],
    [
      "first items",
      { type: "array", prefixItems: [text], items: number },
      { type: "array", items: number },
      ["[0] string|changed-type"],
    ],
    [
      "as many items as there can be",
      { type: "array", items: text, maxItems: 1 },
      { type: "array", prefixItems: [text], items: false },
      [],
    ],
    [
      "more items than there can be",
      { type: "array", items: text },
      { type: "array", prefixItems: [text], items: false },
      ["[] string|changed-type"],
    ],
    ["fewer items", { type: "array" }, { type: "array", maxItems: 1 }, ["array|most"]],
    [
      "items of which none is there twice",
      { type: "array" },
      { type: "array", uniqueItems: true },
      ["none|unique-items"],
    ],
    [
      "one item, which is not there twice",
      { type: "array", maxItems: 1 },
      { type: "array", uniqueItems: true },
      [],
    ],
    [
      "items that may be there twice",
      { type: "array", uniqueItems: false },
      { type: "array", uniqueItems: false, title: "A" },
      [],
    ],
    [
      "what is not",
      { not: { const: 1 } },
      { not: { const: 2 } },
      ["null|cannot-tell", "boolean|cannot-tell", "boolean|cannot-tell", "other|cannot-tell"],
    ],
    [
      "what is not, in other words",
      { not: { const: 1 }, type: "string" },
      { not: { const: 1 }, type: "string", title: "A" },
      [],
    ],
    [
      "what contains",
      { type: "array", contains: text },
      { type: "array", contains: text, minContains: 2 },
      ["other|cannot-tell", "none|cannot-tell"],
    ],
    ["what nobody knows", text, { ...text, "x-other": 1 }, ["none|cannot-tell"]],
    [
      "what nobody said, for another reason",
      { "x-keelson-unsaid": "a" },
      { "x-keelson-unsaid": "b" },
      [],
    ],
    ["what is not said any more", text, { "x-keelson-unsaid": "a" }, ["none|cannot-tell"]],
    [
      "what is said now",
      { "x-keelson-unsaid": "a", type: ["string", "null"] },
      text,
      ["null|type"],
    ],
    ["what is somewhere else", text, { $ref: "https://example.com" }, ["none|cannot-tell"]],
    ["what is nowhere", text, { $ref: "#/$defs/x" }, ["none|cannot-tell"]],
    ["what a reference means", text, { $ref: "#/$defs/a~1b%20c", $defs: { "a/b c": text } }, []],
    [
      "a reference within a document of its own",
      { type: "array", items: text },
      { type: "array", items: { $id: "x", $ref: "#/$defs/t", $defs: { t: text } } },
      [],
    ],
    [
      "what has itself inside",
      tree,
      { ...tree, properties: { ...tree.properties, v: text } },
      ["v number|changed-type", "kids[].v number|changed-type"],
    ],
    ["what has itself inside, said again", tree, { ...tree, title: "A" }, []],
    ["what is nothing but itself", { $ref: "#" }, { $ref: "#", title: "A" }, ["cannot-tell"]],
    ["one of several", { anyOf: [text, number] }, { anyOf: [number, text, { type: "null" }] }, []],
    [
      "the nearest of several",
      { anyOf: [branch("a", { x: text })] },
      { anyOf: [branch("b", { x: text }), branch("a", { x: number }), branch("c")] },
      ["x string|changed-type"],
    ],
    [
      "branches that are apart",
      { oneOf: [branch("a"), branch("b")] },
      { oneOf: [branch("a"), branch("b"), branch("c")] },
      [],
    ],
    [
      "branches that are not",
      { oneOf: [branch("a")] },
      { oneOf: [branch("a"), only({ x: text })] },
      ["none|cannot-tell"],
    ],
    [
      "branches of several types",
      text,
      { oneOf: [text, { type: "number" }, { type: "boolean" }] },
      [],
    ],
    [
      "branches of ranges",
      { const: 1 },
      {
        oneOf: [
          { ...number, maximum: 1 },
          { ...number, minimum: 2 },
        ],
      },
      [],
    ],
    [
      "branches of ranges that meet",
      { const: 1 },
      {
        oneOf: [
          { ...number, maximum: 2 },
          { ...number, minimum: 2 },
        ],
      },
      ["number|cannot-tell"],
    ],
    [
      "branches of values and ranges",
      { const: 1 },
      { oneOf: [{ const: 1 }, { ...number, minimum: 2 }] },
      [],
    ],
    [
      "branches of ranges and values",
      { const: 1 },
      { oneOf: [{ ...number, minimum: 2 }, { const: 1 }] },
      [],
    ],
    [
      "all of several",
      { ...number, minimum: 3 },
      { allOf: [number, { minimum: 1 }, { minimum: 2 }] },
      [],
    ],
    [
      "all of several objects",
      { allOf: [only({ a: text }, { required: ["a"] }), only({ b: number })] },
      only({ a: text, b: text }, { required: ["a"] }),
      ["b number|changed-type"],
    ],
    [
      "all of several objects, of which one says the others",
      { allOf: [only({}, { additionalProperties: text }), only({ b: { maxLength: 2 } })] },
      only({ b: { ...text, maxLength: 1 } }),
      ["b string|most"],
    ],
    [
      "all of several lists",
      { type: "array", allOf: [{ prefixItems: [text] }, { items: { maxLength: 2 } }] },
      { type: "array", prefixItems: [{ ...text, maxLength: 1 }], items: { maxLength: 2 } },
      ["[0] string|most"],
    ],
    [
      "a minimum that is lower, and out",
      { ...number, minimum: 2 },
      { ...number, exclusiveMinimum: 1 },
      [],
    ],
    [
      "a maximum that is higher, and out",
      { ...number, maximum: 1 },
      { ...number, exclusiveMaximum: 2 },
      [],
    ],
    [
      "values on the edge of a range",
      { enum: [1, 2, 3] },
      { ...number, exclusiveMinimum: 1, exclusiveMaximum: 3 },
      ["number|value", "number|value"],
    ],
    [
      "values on the edges of a range that has them",
      { enum: [1, 2, 3] },
      { ...number, minimum: 1, maximum: 3 },
      [],
    ],
    [
      "values around a range",
      { enum: [0, 4] },
      { ...number, exclusiveMinimum: 1, exclusiveMaximum: 3 },
      ["number|value", "number|value"],
    ],
    [
      "values around a range that has its edges",
      { enum: [0, 4] },
      { ...number, minimum: 1, maximum: 3 },
      ["number|value", "number|value"],
    ],
    ["values of multiples", { enum: [4, 0.5] }, { ...number, multipleOf: 2 }, ["number|value"]],
    ["values of lists", { enum: [[1], ["a"]] }, { type: "array", items: number }, ["array|value"]],
    ["values by a pattern of letters", { const: "\u{1f600}" }, { ...text, pattern: "^.$" }, []],
    [
      "values by properties",
      { enum: [{ a: 1 }, { a: "x" }], properties: { a: number } },
      { const: { a: 1 } },
      [],
    ],
    [
      "values by two rules",
      { enum: ["a"], format: "f" },
      { enum: ["a"], format: "f", not: { const: 1 } },
      ["string|cannot-tell"],
    ],
    [
      "values within themselves",
      { enum: [{ a: {} }], properties: { a: { $ref: "#" } } },
      { const: { a: {} } },
      ["cannot-tell"],
    ],
    ["a format of numbers", number, { ...number, format: "int32" }, ["none|format"]],
    [
      "a format that is a number",
      { ...number, multipleOf: 2 },
      { ...number, multipleOf: 2, format: 1 },
      ["none|format"],
    ],
    [
      "multiples of a format",
      { ...number, format: 4 },
      { ...number, multipleOf: 2 },
      ["none|multiple-of"],
    ],
    ["an encoding", text, { ...text, contentEncoding: "base64" }, ["none|cannot-tell"]],
    ["a type of content", text, { ...text, contentMediaType: "text/css" }, ["none|cannot-tell"]],
    [
      "the same encoding",
      { ...text, contentEncoding: "a", contentMediaType: "b", title: "A" },
      { ...text, contentEncoding: "a", contentMediaType: "b" },
      [],
    ],
    [
      "annotations of all kinds",
      text,
      {
        ...text,
        $schema: "a",
        $comment: "b",
        deprecated: true,
        readOnly: true,
        writeOnly: true,
        definitions: {},
      },
      [],
    ],
    [
      "more items than before",
      { type: "array", minItems: 1 },
      { type: "array", minItems: 2 },
      ["array|least"],
    ],
    [
      "as many items",
      { type: "array", minItems: 1, title: "A" },
      { type: "array", minItems: 1 },
      [],
    ],
    [
      "items that may be there twice, said",
      { type: "array" },
      { type: "array", uniqueItems: false },
      [],
    ],
    [
      "names by a pattern, as the others are",
      only({}, { patternProperties: { "^x": number }, additionalProperties: false }),
      only({ xa: text }),
      ["xa number|changed-type"],
    ],
    [
      "names by a pattern, beside the others",
      only({}, { patternProperties: { "^x": number }, additionalProperties: { type: "null" } }),
      only({ xa: text }),
      ["xa null|changed-type", "xa number|changed-type"],
    ],
    [
      "names by the same pattern, in another order",
      only({ a: text, b: text }, { patternProperties: { "^x": text } }),
      { ...only({ b: text, a: text }, { patternProperties: { "^x": text } }), title: "A" },
      [],
    ],
    [
      "what depends on others",
      only({}, { dependentRequired: { a: ["b"] }, dependentSchemas: { a: {} } }),
      only({}, { dependentRequired: { a: ["b"] }, dependentSchemas: { a: {} }, title: "A" }),
      [],
    ],
    [
      "no more properties than before",
      only({ a: text, b: text }, { additionalProperties: false, maxProperties: 1 }),
      only({ a: text, b: text }, { maxProperties: 1 }),
      [],
    ],
    [
      "others that several refuse",
      {
        allOf: [
          only({ a: text }, { additionalProperties: false }),
          only({}, { additionalProperties: text }),
        ],
      },
      only({ a: text }, { maxProperties: 1 }),
      [],
    ],
    [
      "others that one says",
      { allOf: [only({}, { additionalProperties: text }), only({})] },
      only({}, { additionalProperties: { ...text, maxLength: 1 } }),
      ["* string|most"],
    ],
    [
      "a reference to a name without its place",
      text,
      { $ref: "#x$defs/t", $defs: { t: text } },
      ["none|cannot-tell"],
    ],
    [
      "a reference to a name of all signs",
      text,
      { $ref: "#/$defs/a~0b", $defs: { "a~b": text } },
      [],
    ],
    [
      "branches of which one has more",
      {
        oneOf: [
          { ...text, maxLength: 3 },
          { ...text, minLength: 2 },
        ],
      },
      { oneOf: [text, { ...text, minLength: 2 }] },
      ["other|cannot-tell"],
    ],
    [
      "branches of types that meet",
      { const: 1 },
      { oneOf: [{ type: ["string", "number"] }, { type: ["number", "boolean"] }] },
      ["number|cannot-tell"],
    ],
    [
      "branches of a value within a range",
      { const: 1 },
      { oneOf: [{ const: 1 }, { ...number, maximum: 2 }] },
      ["number|cannot-tell"],
    ],
    [
      "branches of a range around a value",
      { const: 1 },
      { oneOf: [{ ...number, maximum: 2 }, { const: 1 }] },
      ["number|cannot-tell"],
    ],
    [
      "branches of ranges, the higher first",
      { const: 1 },
      {
        oneOf: [
          { ...number, minimum: 2 },
          { ...number, maximum: 1 },
        ],
      },
      [],
    ],
    [
      "branches of ranges that meet, the higher first",
      { const: 1 },
      {
        oneOf: [
          { ...number, minimum: 2 },
          { ...number, maximum: 2 },
        ],
      },
      ["number|cannot-tell"],
    ],
    [
      "branches of lists",
      { const: [] },
      { oneOf: [{ type: "array" }, { type: "array", items: text }] },
      ["array|cannot-tell"],
    ],
    [
      "branches that one has to say",
      { const: { by: "a" } },
      { oneOf: [branch("a"), only({ by: { const: "b" } })] },
      ["object|cannot-tell"],
    ],
    [
      "branches by values that meet",
      { const: { by: "a" } },
      {
        oneOf: [
          only({ by: { enum: ["a", "b"] } }, { required: ["by"] }),
          only({ by: { enum: ["b", "c"] } }, { required: ["by"] }),
        ],
      },
      ["object|cannot-tell"],
    ],
    ["branches by an object within two", deep(2, "a"), { oneOf: [deep(2, "a"), deep(2, "b")] }, []],
    [
      "branches by an object within three",
      deep(3, "a"),
      { oneOf: [deep(3, "a"), deep(3, "b")] },
      ["none|cannot-tell"],
    ],
    [
      "branches that have themselves inside",
      { oneOf: [operator("neg"), operator("not")] },
      { oneOf: [operator("neg"), operator("not"), operator("abs")] },
      [],
    ],
    [
      "a property more where nothing else is",
      { allOf: [only({ a: text }), only({ b: text })], unevaluatedProperties: false },
      { allOf: [only({ a: text }), only({ b: text, c: text })], unevaluatedProperties: false },
      ["c only-to"],
    ],
    [
      "nothing else any more",
      { allOf: [only({ a: text }), only({ b: text }, { additionalProperties: text })] },
      { allOf: [only({ a: text }), only({ b: text })], unevaluatedProperties: false },
      ["* unnamed"],
    ],
    [
      "nothing else beside what takes anything, and beside another type",
      { allOf: [only({ a: text }, { additionalProperties: {} })] },
      {
        anyOf: [text, only({ a: text }, { additionalProperties: {} })],
        unevaluatedProperties: false,
      },
      [],
    ],
    [
      "nothing else than one of two objects has",
      { anyOf: [only({ a: text }), only({ b: number })] },
      { anyOf: [only({ a: text }), only({ b: number })], unevaluatedProperties: false },
      ["none|cannot-tell"],
    ],
    [
      "nothing else than a rule may name",
      { allOf: [only({ a: text }, { patternProperties: { "^x": text } })] },
      {
        allOf: [only({ a: text }, { patternProperties: { "^x": text } })],
        unevaluatedProperties: false,
      },
      ["none|cannot-tell"],
    ],
    ["no property of what is no object", text, { ...text, unevaluatedProperties: false }, []],
    [
      "nothing else than what one object has, and another type",
      { anyOf: [text, only({ a: text })] },
      { anyOf: [text, only({ a: text })], unevaluatedProperties: false },
      ["* unnamed"],
    ],
    [
      "nothing else than one value",
      { const: { a: 1 } },
      { const: { a: 1 }, unevaluatedProperties: false },
      ["object|cannot-tell"],
    ],
    [
      "what else there is is a text",
      { allOf: [only({ a: text })] },
      { allOf: [only({ a: text })], unevaluatedProperties: text },
      ["none|cannot-tell"],
    ],
    [
      "what else there is is anything",
      only({ a: text }),
      only({ a: text }, { unevaluatedProperties: true }),
      [],
    ],
    ["no text of it any more", number, { ...number, ...noTextMark }, ["none|changed-type"]],
    ["a text of it as well", { ...number, ...noTextMark }, number, []],
    [
      "a higher minimum of what takes no text",
      { ...number, minimum: 1, ...noTextMark },
      { ...number, minimum: 2, ...noTextMark },
      ["number|least"],
    ],
    [
      "an annotation",
      { ...text, title: "A" },
      { ...text, description: "B", default: "x", examples: [1] },
      [],
    ],
  ])("%s", (_name, from, to, expected) => {
    expect(
      differences(from, to).map(({ path, kind, type }) =>
        [path, [type, kind].filter(Boolean).join("|")].filter(Boolean).join(" "),
      ),
    ).toEqual(expected);
  });

  test("a property refused by name alone is no difference to a reader that ignores unknown properties", () => {
    const closedText = only({ a: text }, { additionalProperties: false });
    const more = only({ a: text, b: text }, { additionalProperties: false });
    expect(differences(more, closedText, { isOpen: true })).toEqual([
      { path: "b", kind: "only-from", type: "", from: "there", to: "" },
    ]);
    expect(
      differences(only({}, { additionalProperties: text }), closedText, { isOpen: true }),
    ).toEqual([]);
  });

  test("too many alternatives are quickly reported as too complex", () => {
    const either = (name: string) => ({
      anyOf: [0, 1, 2, 3].map((value) => only({ [name]: { const: value } })),
    });
    const wide = { allOf: Array.from({ length: 12 }, (_, index) => either(`p${index}`)) };
    const why = { path: "", kind: "cannot-tell", type: "", from: "", to: "too complex" };
    expect(differences(wide, { ...wide, title: "A", minProperties: 0 })).toEqual([why]);
    expect(differences(wide, structuredClone(wide))).toEqual([]);
    expect(differences(wide, true)).toEqual([]);
  });

  test("nested alternatives are reported as too complex", () => {
    const nested = (level: number, at: number): SchemaNode =>
      level === 0
        ? { ...number, minimum: at }
        : {
            anyOf: Array.from({ length: 7 }, (_, index) =>
              only({ n: nested(level - 1, at + index) }, { required: ["n"] }),
            ),
          };
    expect(differences(nested(4, 0), nested(4, 100)).map(({ kind }) => kind)).toContain(
      "cannot-tell",
    );
  });

  test("throws for an invalid schema", () => {
    expect(() => differences({ anyOf: 7 }, text)).toThrow(TypeError);
    expect(differences({ type: "date" }, text)).toEqual([]); // as no value has that type
  });

  test("describes the old and the new value in readable form", () => {
    const said = (from: SchemaNode, to: SchemaNode) =>
      differences(from, to).map((one) => `${one.from} -> ${one.to}`);
    expect(said({ ...number, minimum: 1 }, { ...number, exclusiveMinimum: 2 })).toEqual([
      "1 -> 2 (exclusive)",
    ]);
    expect(said(number, { ...number, maximum: 2 })).toEqual(["none -> 2"]);
    expect(said({ enum: ["a", "b"] }, { enum: ["a", "c"] })).toEqual(['"b" -> "a", "c"']);
    expect(said(text, { enum: ["a"] })).toEqual(['any string -> "a"']);
    expect(said({ type: ["string", "null"] }, text)).toEqual(["null or string -> string"]);
    expect(said({ ...text, pattern: "a" }, { ...text, pattern: "b" })).toEqual(["a -> b"]);
    expect(said(text, { enum: ["a", "b"] })).toEqual(['any string -> "a", "b"']);
    expect(
      said({ ...text, allOf: [{ pattern: "a" }, { pattern: "b" }] }, { ...text, pattern: "c" }),
    ).toEqual(["a, b -> c"]);
    expect(said(text, { ...text, not: { const: "x" } })).toEqual([" -> not"]);
    expect(said(text, { $ref: "#/$defs/x" })).toEqual([" -> $ref"]);
    const two = { anyOf: [only({ a: text }), only({ b: text })] };
    expect(said(two, { ...two, unevaluatedProperties: false })).toContain(
      " -> unevaluatedProperties",
    );
    expect(said(text, { oneOf: [text, { ...text, minLength: 1 }] })).toEqual([" -> oneOf"]);
    expect(said(only({}), only({ a: text }))).toEqual([" -> there"]);
    expect(said(only({}), only({ a: text }, { required: ["a"] }))).toEqual([" -> required"]);
    expect(said(only({}), only({}, { additionalProperties: false }))).toEqual([
      "allowed -> refused",
    ]);
    const closedNames = only({ ab: text, cd: text }, { additionalProperties: false });
    expect(said(closedNames, { ...closedNames, propertyNames: { maxLength: 1 } })).toEqual([
      " -> ab, cd",
    ]);
    expect(
      said(number, {
        anyOf: [
          { ...number, minimum: 1 },
          { ...number, minimum: 2 },
        ],
      }),
    ).toEqual(["none -> 1"]);
    expect(said({ const: "abc" }, { ...text, maxLength: 1 })).toEqual(['"abc" -> any string']);
  });
});

test("a property on one side only does not refuse a value", () => {
  const kinds = (from: SchemaNode, to: SchemaNode) =>
    differences(from, to).map((one) => [one.kind, isRefusing(one)]);
  expect(kinds(only({ a: text }), only({ b: text }))).toEqual([
    ["only-from", false],
    ["only-to", false],
  ]);
  expect(kinds(text, number)).toEqual([["changed-type", true]]);
});

describe("another branch of a union", () => {
  const kinds = (from: SchemaNode, to: SchemaNode) =>
    differences(from, to).map(({ path, kind }) => `${path}|${kind}`);
  const [card, bill, cash] = [
    branch("card", { number: text }),
    branch("bill", { to: text }),
    branch("cash", { at: text }),
  ];

  test("is recognised by its discriminator alone, whatever its other properties", () => {
    expect(kinds({ anyOf: [card, bill, cash] }, { anyOf: [card, bill] })).toEqual(["by|value"]);
    expect(kinds({ anyOf: [card, cash] }, card)).toEqual(["by|value"]);
    expect(kinds(cash, { anyOf: [card, bill] })).toEqual(["by|value"]);
  });

  test("is not recognised by an extra value in a property that distinguishes no branches", () => {
    const first = only({ by: { enum: ["card", "cash"] }, note: text }, { required: ["by"] });
    expect(kinds({ anyOf: [first, bill] }, { anyOf: [card, bill] })).toEqual([
      "by|value",
      "note|only-from",
      "number|only-to",
    ]);
  });

  test("is not recognised when each side has one of its own, whatever other types there are", () => {
    const all = ["by|value", "number|only-from", "to|only-to"];
    expect(kinds(card, bill)).toEqual(all);
    expect(kinds({ anyOf: [card, text] }, { anyOf: [bill, text] })).toEqual(all);
  });
});
