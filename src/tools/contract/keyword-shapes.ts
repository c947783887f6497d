import {
  isHigher,
  isLower,
  type Limit,
  noTags,
  type Schema,
  type SchemaNode,
  type Shape,
  type Tags,
  tagOf,
  type ValueShape,
} from "./shape.ts";

type Keywords = Readonly<Record<string, unknown>>;

export const allTypes: readonly string[] = [
  "null",
  "boolean",
  "number",
  "string",
  "array",
  "object",
];

/** Ignores references and keywords that combine schemas. */
export function shapesOfTypes(
  types: readonly string[],
  node: Keywords,
  root: SchemaNode,
): readonly Shape[] {
  return types.flatMap((type) => makers[type]?.(node, root) ?? []);
}

export function valueShape(value: unknown): ValueShape {
  return { kind: "value", value, tags: noTags };
}

/** Returns a part of a schema in the form that shapes store. */
export function partOf(part: unknown, root: SchemaNode): Schema {
  // Safe: only known keywords are read, and a value that is not a schema does not have any.
  return part === undefined ? [] : [{ node: part as SchemaNode, root }];
}

const makers: Readonly<Record<string, (node: Keywords, root: SchemaNode) => readonly Shape[]>> = {
  null: () => [valueShape(null)],
  boolean: () => [valueShape(true), valueShape(false)],
  number: (node) => [{ kind: "number", ...numberRange(node), tags: tagsOf(node, numberTags) }],
  integer: (node) => [
    {
      kind: "number",
      ...numberRange(node),
      tags: new Map([tagOf("multipleOf", 1), ...tagsOf(node, numberTags)]),
    },
  ],
  string: (node) => [
    {
      kind: "string",
      ...range(node["minLength"], node["maxLength"]),
      tags: tagsOf(node, stringTags),
    },
  ],
  array: (node, root) => [
    {
      kind: "array",
      ...range(node["minItems"], node["maxItems"]),
      tags: node["uniqueItems"] === true ? tagsOf(node, ["uniqueItems"]) : noTags,
      prefix: listOf(node["prefixItems"]).map((item) => partOf(item, root)),
      rest: partOf(node["items"], root),
    },
  ],
  object: (node, root) => [
    {
      kind: "object",
      ...range(node["minProperties"], node["maxProperties"]),
      tags: noTags,
      properties: new Map(
        Object.entries(node["properties"] ?? {}).map(([name, part]) => [name, partOf(part, root)]),
      ),
      required: new Set(listOf(node["required"]).map(String)),
      additional: additionalOf(node, root),
      names: partOf(node["propertyNames"], root),
    },
  ],
};

const numberTags = ["multipleOf", "format"];
const stringTags = ["pattern", "format", "contentEncoding", "contentMediaType"];

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** With `patternProperties`, an unnamed property may match any of the patterns. */
function additionalOf(
  { additionalProperties, patternProperties }: Keywords,
  root: SchemaNode,
): Schema | undefined {
  if (patternProperties !== undefined) {
    // Safe: draft 2020-12 requires an object here.
    const patterned = Object.values(patternProperties as object);
    return partOf({ anyOf: [additionalProperties ?? true, ...patterned] }, root);
  }
  return additionalProperties === undefined ? undefined : partOf(additionalProperties, root);
}

function tagsOf(node: Keywords, keywords: readonly string[]): Tags {
  return new Map(
    keywords.flatMap((keyword) =>
      node[keyword] === undefined ? [] : [tagOf(keyword, node[keyword])],
    ),
  );
}

function numberRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Keywords): {
  least: Limit;
  most: Limit;
} {
  const lows = [limit(minimum, false), limit(exclusiveMinimum, true)].filter(
    (found) => found !== undefined,
  );
  const highs = [limit(maximum, false), limit(exclusiveMaximum, true)].filter(
    (found) => found !== undefined,
  );
  return {
    least: lows.reduce((one, other) => (isHigher(one, other) ? one : other), {
      at: Number.NEGATIVE_INFINITY,
      isOpen: false,
    }),
    most: highs.reduce((one, other) => (isLower(one, other) ? one : other), {
      at: Number.POSITIVE_INFINITY,
      isOpen: false,
    }),
  };
}

function range(least: unknown, most: unknown): { least: Limit; most: Limit } {
  return {
    least: limit(least, false) ?? { at: 0, isOpen: false },
    most: limit(most, false) ?? { at: Number.POSITIVE_INFINITY, isOpen: false },
  };
}

function limit(at: unknown, isOpen: boolean): Limit | undefined {
  return typeof at === "number" ? { at, isOpen } : undefined;
}
