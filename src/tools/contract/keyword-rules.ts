import { noTextMark, unsaidMark } from "../../app/openapi/schema.ts";
import type { SchemaNode } from "./shape.ts";

/** Keywords that shapes express or that restrict nothing. Others become tags. */
export const knownKeywords: ReadonlySet<string> = new Set([
  ...["type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions"],
  ...[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "format",
    "minLength",
    "maxLength",
    "pattern",
  ],
  ...[
    "contentEncoding",
    "contentMediaType",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "items",
  ],
  ...[
    "minProperties",
    "maxProperties",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
  ],
  ...[
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
  ],
]);

/** Includes the neighboring keywords that affect the rule. */
export function ruleOf(keyword: string, node: Readonly<Record<string, unknown>>): SchemaNode {
  const { properties = {}, additionalProperties } = node;
  if (keyword === "patternProperties")
    return {
      patterns: node[keyword],
      additionalProperties,
      named: Object.keys(properties as object).sort(),
    }; // safe: an object in JSON Schema
  if (keyword === unsaidMark) return {}; // the reason does not matter
  return alone.has(keyword) ? { [keyword]: node[keyword] } : node;
}

const alone: ReadonlySet<string> = new Set([
  "not",
  "dependentRequired",
  "dependentSchemas",
  ...Object.keys(noTextMark),
]);
