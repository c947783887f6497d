import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../test/support/runs.ts";
import { differences } from "./schema-comparison.ts";
import type { SchemaNode } from "./shape.ts";
import { isRefusing } from "./shape-differences.ts";

const names = ["a", "b", "c"];

describe("differences", () => {
  test("are absent only if the new schema accepts each value that the old one did, as Ajv confirms", () => {
    let compared = 0;
    fc.assert(
      fc.property(
        pairs,
        fc.array(values, { minLength: 30, maxLength: 30 }),
        ([from, to], candidates) => {
          if (differences(from, to).some(isRefusing)) return;
          const [isFrom, isTo] = [closed(from), to].map(validator) as [Check, Check]; // safe: of two
          for (const value of candidates) {
            if (!isFrom(value)) continue;
            compared += 1;
            expect(
              isTo(value),
              `${JSON.stringify(value)} from ${JSON.stringify(from)} to ${JSON.stringify(to)}`,
            ).toBe(true);
          }
        },
      ),
      { numRuns: runs(2_500) },
    );
    expect(compared).toBeGreaterThan(0); // else nothing was tried
  });

  test("are absent for a reader that ignores unknown properties only if it accepts the rest of each value", () => {
    fc.assert(
      fc.property(
        pairs,
        fc.array(values, { minLength: 30, maxLength: 30 }),
        ([from, to], candidates) => {
          if (differences(from, to, { isOpen: true }).some(isRefusing)) return;
          const [isFrom, isTo] = [closed(from), opened(to)].map(validator) as [Check, Check]; // safe: of two
          for (const value of candidates.filter((one) => isFrom(one)))
            expect(
              isTo(value),
              `${JSON.stringify(value)} from ${JSON.stringify(from)} to ${JSON.stringify(to)}`,
            ).toBe(true);
        },
      ),
      { numRuns: runs(1_500) },
    );
  });

  test("are absent between a schema and itself", () => {
    fc.assert(
      fc.property(
        documents,
        (schema) => void expect(differences(schema, structuredClone(schema))).toEqual([]),
      ),
    );
  });
});

type Check = (value: unknown) => boolean;

function validator(schema: SchemaNode): Check {
  const check = new Ajv2020({
    strict: false,
    validateFormats: false,
    validateSchema: false,
    meta: false,
    logger: false,
  }).compile(schema);
  return (value) => check(value) === true;
}

/** Refuses the names that nobody was told anything of. */
function closed(schema: SchemaNode, above: ReadonlySet<string> = new Set()): SchemaNode {
  if (typeof schema === "boolean") return schema;
  const {
    properties = {},
    additionalProperties,
    patternProperties,
    $defs,
    items,
    prefixItems,
    ...rest
  } = schema as Named;
  const told = new Set([...above, ...namesOf(schema)]);
  const each = <Parts extends object>(parts: Parts, names = new Set<string>()) =>
    Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [name, closed(part as SchemaNode, names)]),
    ); // safe: they are schemas
  const list = (parts: readonly SchemaNode[], names = new Set<string>()) =>
    parts.map((part) => closed(part, names));
  const isSilent = additionalProperties === undefined;
  return {
    ...rest,
    properties: {
      ...(isSilent
        ? Object.fromEntries(names.filter((name) => !told.has(name)).map((name) => [name, false]))
        : {}),
      ...each(properties),
    },
    ...(isSilent ? {} : { additionalProperties: closed(additionalProperties) }),
    ...(patternProperties === undefined ? {} : { patternProperties: each(patternProperties) }),
    ...($defs === undefined ? {} : { $defs: each($defs) }),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(prefixItems === undefined ? {} : { prefixItems: list(prefixItems) }),
    ...(rest.allOf === undefined ? {} : { allOf: list(rest.allOf, told) }),
    ...(rest.anyOf === undefined
      ? {}
      : {
          anyOf: list(rest.anyOf, new Set([...above, ...namesOf({ ...schema, anyOf: undefined })])),
        }),
  } as SchemaNode; // safe: it has the keywords that it had
}

/** What a schema names, and what it combines with. */
function namesOf(schema: SchemaNode): readonly string[] {
  if (typeof schema === "boolean") return [];
  const { properties = {}, allOf = [], anyOf = [], oneOf = [] } = schema as Named; // safe: as they are made here
  return [...Object.keys(properties), ...[...allOf, ...anyOf, ...oneOf].flatMap(namesOf)];
}

/** Lets through what is refused by name alone. */
function opened(schema: SchemaNode): SchemaNode {
  return JSON.parse(
    JSON.stringify(schema, (name, part) =>
      /^(?:additional|unevaluated)Properties$/.test(name) && part === false ? undefined : part,
    ),
  ) as SchemaNode; // safe: as it was
}

interface Named {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode;
  readonly items?: SchemaNode;
  readonly prefixItems?: readonly SchemaNode[];
  readonly allOf?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  readonly $defs?: Readonly<Record<string, SchemaNode>>;
}

const small = fc.integer({ min: -2, max: 4 });
const length = fc.integer({ min: 0, max: 3 });
const literal = fc.constantFrom<unknown>(null, true, false, 0, 1, 2, "", "a", "ab", {}, [1], {
  a: 1,
});
const some = <Value>(arbitrary: fc.Arbitrary<Value>) =>
  fc.option(arbitrary, { nil: undefined, freq: 3 });
const record = (parts: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(parts).map((made) => JSON.parse(JSON.stringify(made)) as SchemaNode); // safe: without what is absent it is a schema

const { schema: anySchema } = fc.letrec<{
  schema: SchemaNode;
  leaf: SchemaNode;
  object: SchemaNode;
}>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom<SchemaNode>(
      true,
      false,
      {},
      { type: "null" },
      { type: "boolean" },
      { type: ["string", "null"] },
    ),
    record({
      type: fc.constantFrom("number", "integer"),
      minimum: some(small),
      maximum: some(small),
      exclusiveMinimum: some(small),
      exclusiveMaximum: some(small),
      multipleOf: some(fc.constantFrom(1, 2, 4, 0.5)),
    }),
    record({
      type: fc.constant("string"),
      minLength: some(length),
      maxLength: some(length),
      pattern: some(fc.constantFrom("^a", "b$")),
    }),
    record({
      enum: fc.uniqueArray(literal, {
        minLength: 1,
        maxLength: 4,
        selector: (one) => JSON.stringify(one),
      }),
    }),
    record({ const: literal, maximum: some(small), maxLength: some(length) }),
    fc.constantFrom<SchemaNode>(
      { $ref: "#/$defs/x" },
      { not: { const: 1 } },
      { not: { type: "string" } },
    ),
  ),
  object: record({
    type: fc.constant("object"),
    properties: fc.dictionary(fc.constantFrom(...names), tie("schema"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
    required: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 2 }),
    additionalProperties: some(
      fc.oneof({ weight: 2, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: tie("leaf") }),
    ),
    minProperties: some(fc.constantFrom(0, 1, 2)),
    maxProperties: some(length),
    propertyNames: some(
      fc.constantFrom<SchemaNode>({ enum: ["a", "b"] }, { maxLength: 1 }, { type: "string" }),
    ),
    patternProperties: fc.option(
      fc.constantFrom<unknown>({ "^a": { type: "number" } }, { b: true }),
      {
        nil: undefined,
        freq: 12,
      },
    ),
  }),
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 4, arbitrary: tie("leaf") },
    { weight: 4, arbitrary: tie("object") },
    {
      weight: 2,
      arbitrary: record({
        type: fc.constant("array"),
        items: some(tie("schema")),
        prefixItems: some(fc.array(tie("schema"), { minLength: 1, maxLength: 2 })),
        minItems: some(length),
        maxItems: some(length),
        uniqueItems: some(fc.boolean()),
      }),
    },
    {
      weight: 3,
      arbitrary: record({
        anyOf: some(fc.array(tie("schema"), { minLength: 1, maxLength: 3 })),
        allOf: some(fc.array(tie("schema"), { minLength: 1, maxLength: 2 })),
        oneOf: some(fc.array(tie("schema"), { minLength: 1, maxLength: 2 })),
        unevaluatedProperties: some(fc.constant(false)),
      }),
    },
  ),
}));

const documents = fc
  .tuple(anySchema, anySchema)
  .map(([schema, x]) => ({ allOf: [schema], $defs: { x: isLoop(x) ? { type: "null" } : x } }));

function isLoop(schema: SchemaNode): boolean {
  const { $ref, allOf = [], anyOf = [], oneOf = [] } = schema as Named & { readonly $ref?: string }; // safe: as they are made here
  return $ref !== undefined || [...allOf, ...anyOf, ...oneOf].some(isLoop);
}

/** The same document after some edits: schemas that have nothing in common say little. */
const pairs = fc
  .tuple(
    documents,
    fc.array(fc.tuple(fc.nat(), anySchema, fc.integer({ min: 0, max: 3 })), { maxLength: 3 }),
  )
  .map(([from, edits]): [SchemaNode, SchemaNode] => {
    const to = structuredClone(from) as SchemaNode;
    for (const [place, schema, how] of edits)
      edit(to, place, structuredClone(schema) as SchemaNode, how);
    return [from, to];
  })
  .filter(([, to]) => !isLoop((to as { $defs: { x: SchemaNode } }).$defs.x)); // safe: documents have it

/** Changes one schema within another, or one of its numbers, or takes a keyword away. */
function edit(document: SchemaNode, place: number, schema: SchemaNode, how: number): void {
  const places: (readonly [Record<string, unknown>, string])[] = [];
  const visit = (node: unknown) => {
    if (typeof node !== "object" || node === null) return;
    for (const name of Object.keys(node)) {
      const parent = node as Record<string, unknown>; // safe: an object or a list of ours
      if (["$ref", "type", "enum", "const", "required", "patternProperties"].includes(name))
        continue;
      if (name !== "$defs") places.push([parent, name]);
      visit(parent[name]);
    }
  };
  visit(document);
  const [parent, name] = places[place % places.length] as (typeof places)[number]; // safe: a document has an allOf
  const old = parent[name];
  const isSchema = /^(\d+|[abcx]|items|additionalProperties|not)$/.test(name);
  if (isSchema && how < 3)
    parent[name] =
      how === 0 ? schema : how === 1 ? { anyOf: [old, schema] } : { allOf: [old, schema] };
  else if (typeof old === "number")
    parent[name] = Math.max(name === "multipleOf" ? 1 : 0, old + (how - 1));
  else if (how === 3 && !isSchema && name !== "allOf") delete parent[name];
}

const values: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown; leaf: unknown }>((tie) => ({
  leaf: fc.oneof(
    literal,
    small,
    fc.constantFrom<unknown>(0.5, "abc", "b", "ba", 8, -1.5, [], [[]], [1, 1]),
  ),
  value: fc.oneof(
    { maxDepth: 3 },
    { weight: 2, arbitrary: tie("leaf") },
    {
      weight: 2,
      arbitrary: fc.dictionary(fc.constantFrom(...names), tie("value"), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
    },
    { weight: 1, arbitrary: fc.array(tie("value"), { maxLength: 3 }) },
  ),
})).value;
