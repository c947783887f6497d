import { noTextMark, unsaidMark } from "../../app/openapi/schema.ts";
import type { SchemaNode } from "./shape.ts";

/**
 * Keywords that shapes express, and keywords that restrict nothing. Any other keyword becomes a
 * tag.
 */
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

/** Returns a rule that shapes cannot express, including the neighboring keywords that affect it. */
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

/** Keywords whose meaning does not depend on neighboring keywords. */
const alone: ReadonlySet<string> = new Set([
  "not",
  "dependentRequired",
  "dependentSchemas",
  ...Object.keys(noTextMark),
]);
