import { isObject, type JsonSchema, mapParts, saysNothing } from "./schema.ts";

/** Makes members of a response optional if they may be `undefined`, because JSON omits them. */
export function withMissingMembers(given: JsonSchema): JsonSchema {
  const schema = mapParts(given, withMissingMembers);
  const { required, ...rest } = schema;
  const { properties } = rest;
  if (!isObject(properties) || !Array.isArray(required)) return schema;
  const sent = required.filter((name) => !mayBeMissing(properties[String(name)]));
  return sent.length === 0 ? rest : { ...schema, required: sent };
}

/** Converters write `undefined` as a schema that nothing matches. */
function mayBeMissing(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { not, anyOf } = schema;
  return (
    saysNothing(schema) ||
    (isObject(not) && saysNothing(not)) ||
    (Array.isArray(anyOf) && anyOf.some(mayBeMissing))
  );
}
