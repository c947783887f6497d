import type { Components } from "./components.ts";
import { asSchema, defined, isObject, type JsonSchema, partsOf } from "./schema.ts";

export interface Fields {
  readonly properties: ReadonlyMap<string, JsonSchema>;
  readonly required: ReadonlySet<string>;
}

/** Returns the members that a schema describes, also in references, `allOf` and alternatives. */
export function fieldsOf(given: JsonSchema, components: Components): Fields {
  const schema = components.resolve(given);
  const { properties, required } = schema;
  const own: Fields = {
    properties: new Map(
      Object.entries(isObject(properties) ? properties : {}).map(([name, part]) => [
        name,
        asSchema(part),
      ]),
    ),
    required: new Set(Array.isArray(required) ? required.map(String) : []),
  };
  const partsAt = (word: string) => partsOf(schema, word).map((part) => fieldsOf(part, components));
  const choices = ["anyOf", "oneOf"].map(partsAt).filter((parts) => parts.length > 0);
  return [own, ...partsAt("allOf"), ...choices.map(eitherOf)].reduce(bothOf);
}

/** Removes members from a schema, and expands its references. */
export function withoutFields(
  given: JsonSchema,
  names: ReadonlySet<string>,
  components: Components,
): JsonSchema {
  if (names.size === 0) return given;
  const { properties, required, ...schema } = components.resolve(given);
  const kept = Array.isArray(required) ? required.filter((name) => !names.has(String(name))) : [];
  const parts = ["allOf", "anyOf", "oneOf"].flatMap((word) => {
    const list = partsOf(schema, word).map((part) => withoutFields(part, names, components));
    return list.length === 0 ? [] : [[word, list]];
  });
  const left =
    isObject(properties) && Object.entries(properties).filter(([name]) => !names.has(name));
  return defined({
    ...schema,
    ...Object.fromEntries(parts),
    properties: left ? Object.fromEntries(left) : undefined,
    required: kept.length === 0 ? undefined : kept,
  });
}

function bothOf(one: Fields, other: Fields): Fields {
  return {
    properties: merged([one, other], (schemas) => ({ allOf: schemas })),
    required: new Set([...one.required, ...other.required]),
  };
}

function eitherOf(parts: readonly Fields[]): Fields {
  const names = parts.flatMap(({ required }) => [...required]);
  return {
    properties: merged(parts, (schemas) => ({ anyOf: schemas })),
    required: new Set(names.filter((name) => parts.every(({ required }) => required.has(name)))),
  };
}

function merged(
  parts: readonly Fields[],
  join: (schemas: readonly JsonSchema[]) => JsonSchema,
): ReadonlyMap<string, JsonSchema> {
  const found = Map.groupBy(
    parts.flatMap(({ properties }) => [...properties]),
    ([name]) => name,
  );
  const one = (schemas: readonly JsonSchema[]) => {
    const texts = new Map(schemas.map((schema) => [JSON.stringify(schema), schema]));
    const [only = {}, ...others] = texts.values();
    return others.length === 0 ? only : join([...texts.values()]);
  };
  return new Map([...found].map(([name, all]) => [name, one(all.map(([, schema]) => schema))]));
}
