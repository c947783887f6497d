import { isObject, type JsonSchema, mapParts, saysNothing } from "./schema.ts";

/** The same schema of an answer, where members that may be `undefined` are not required: JSON leaves them out. */
export function withMissingMembers(given: JsonSchema): JsonSchema {
  const schema = mapParts(given, withMissingMembers);
  const { required, ...rest } = schema;
  const { properties } = rest;
  if (!isObject(properties) || !Array.isArray(required)) return schema;
  const sent = required.filter((name) => !mayBeMissing(properties[String(name)]));
  return sent.length === 0 ? rest : { ...schema, required: sent };
}

/** What takes anything takes `undefined`, and readers of schemas say `undefined` itself as what nothing fits. */
function mayBeMissing(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const { not, anyOf } = schema;
  return (
    saysNothing(schema) ||
    (isObject(not) && saysNothing(not)) ||
    (Array.isArray(anyOf) && anyOf.some(mayBeMissing))
  );
}
