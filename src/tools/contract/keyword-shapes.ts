import { type JsonSchema, noTextMark, unsaidMark } from "../../app/openapi/schema.ts";
import {
  isHigher,
  isLower,
  type Limit,
  noTags,
  type Ranged,
  type Schema,
  type SchemaNode,
  type Shape,
  type Tags,
  tagged,
  tagOf,
  type ValueShape,
} from "./shape.ts";

type Range = Pick<Ranged, "least" | "most">;

export const allTypes: readonly string[] = "null boolean number string array object".split(" ");

/** Ignores references and keywords that combine schemas. */
export function shapesOfTypes(
  types: readonly string[],
  node: JsonSchema,
  root: SchemaNode,
): readonly Shape[] {
  return types.flatMap((type) => makers[type]?.(node, root) ?? []);
}

export function valueShape(value: unknown): ValueShape {
  return { kind: "value", value, tags: noTags };
}

export function partOf(part: unknown, root: SchemaNode): Schema {
  // Safe cast: only known keywords are read, and a non-schema does not have them.
  return part === undefined ? [] : [{ node: part as SchemaNode, root }];
}

const makers: Readonly<Record<string, (node: JsonSchema, root: SchemaNode) => readonly Shape[]>> = {
  null: () => [valueShape(null)],
  boolean: () => [valueShape(true), valueShape(false)],
  number: (node) => [{ kind: "number", ...numberRange(node), tags: tagsOf(node, numberTags) }],
  integer: (node) => tagged(shapesOfTypes(["number"], node, true), "multipleOf", 1),
  string: (node) => [{ kind: "string", ...range(node, "Length"), tags: tagsOf(node, stringTags) }],
  array: (node, root) => [
    {
      kind: "array",
      ...range(node, "Items"),
      tags: node["uniqueItems"] === true ? tagsOf(node, ["uniqueItems"]) : noTags,
      prefix: listOf(node["prefixItems"]).map((item) => partOf(item, root)),
      rest: partOf(node["items"], root),
    },
  ],
  object: (node, root) => [
    {
      kind: "object",
      ...range(node, "Properties"),
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

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Unnamed properties may match any of the `patternProperties`. */
function additionalOf(
  { additionalProperties, patternProperties }: JsonSchema,
  root: SchemaNode,
): Schema | undefined {
  if (patternProperties !== undefined) {
    // Safe cast: draft 2020-12 requires an object here.
    const patterned = Object.values(patternProperties as object);
    return partOf({ anyOf: [additionalProperties ?? true, ...patterned] }, root);
  }
  return additionalProperties === undefined ? undefined : partOf(additionalProperties, root);
}

function tagsOf(node: JsonSchema, keywords: readonly string[]): Tags {
  const given = keywords.filter((keyword) => node[keyword] !== undefined);
  return new Map(given.map((keyword) => tagOf(keyword, node[keyword])));
}

function numberRange(node: JsonSchema): Range {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = node;
  const least = [limit(minimum, -Infinity), limit(exclusiveMinimum, -Infinity, true)] as const;
  const most = [limit(maximum, Infinity), limit(exclusiveMaximum, Infinity, true)] as const;
  return { least: least[isHigher(...least) ? 0 : 1], most: most[isLower(...most) ? 0 : 1] };
}

function range(node: JsonSchema, what: string): Range {
  return { least: limit(node[`min${what}`], 0), most: limit(node[`max${what}`], Infinity) };
}

function limit(at: unknown, none: number, isOpen = false): Limit {
  return typeof at === "number" ? { at, isOpen } : { at: none, isOpen: false };
}

/** Keywords that shapes express or that restrict nothing. Other keywords become tags. */
export const knownKeywords: ReadonlySet<string> = new Set([
  ..."type enum const $ref allOf anyOf oneOf $defs definitions".split(" "),
  ..."minimum maximum exclusiveMinimum exclusiveMaximum multipleOf format".split(" "),
  ..."minLength maxLength pattern contentEncoding contentMediaType".split(" "),
  ..."minItems maxItems uniqueItems prefixItems items".split(" "),
  ..."minProperties maxProperties properties required propertyNames".split(" "),
  ..."additionalProperties unevaluatedProperties".split(" "),
  ..."$schema $id $comment title description default examples".split(" "),
  ..."deprecated readOnly writeOnly".split(" "),
]);

/** Includes the neighboring keywords that affect the rule. */
export function ruleOf(keyword: string, node: JsonSchema): SchemaNode {
  const { properties = {}, additionalProperties } = node;
  if (keyword === "patternProperties") {
    const named = Object.keys(properties as object).sort(); // safe cast: an object in JSON Schema
    return { patterns: node[keyword], additionalProperties, named };
  }
  if (keyword === unsaidMark) return {}; // the reason does not matter
  return alone.has(keyword) ? { [keyword]: node[keyword] } : node;
}

const alone: ReadonlySet<string> = new Set([
  "not",
  "dependentRequired",
  "dependentSchemas",
  ...Object.keys(noTextMark),
]);
