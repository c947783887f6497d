import { type JsonSchema, noTextMark, unsaidMark } from "../../app/openapi/schema.ts";
import type { SchemaNode } from "./shape.ts";

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

/** Returns the rule of a keyword, including the neighboring keywords that affect it. */
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
