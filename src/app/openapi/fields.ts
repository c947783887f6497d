import type { Components } from "./components.ts";
import { isObject, type JsonSchema } from "./schema.ts";

/** Members of an object that a schema describes. */
export interface Fields {
  readonly properties: ReadonlyMap<string, JsonSchema>;
  readonly required: ReadonlySet<string>;
}

/** Collects the members that a schema declares, following references, `allOf` and alternatives. */
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
  const every = partsOf(schema, "allOf").map((part) => fieldsOf(part, components));
  const choices = ["anyOf", "oneOf"].flatMap((word) => {
    const parts = partsOf(schema, word).map((part) => fieldsOf(part, components));
    return parts.length === 0 ? [] : [eitherOf(parts)];
  });
  return [own, ...every, ...choices].reduce(bothOf);
}

/** Returns a schema without some members. References are expanded. */
export function withoutFields(
  given: JsonSchema,
  names: ReadonlySet<string>,
  components: Components,
): JsonSchema {
  if (names.size === 0) return given;
  const { properties, required, ...schema } = components.resolve(given);
  const kept = Array.isArray(required) ? required.filter((name) => !names.has(String(name))) : [];
  const parts = ["allOf", "anyOf", "oneOf"].flatMap((word) => {
    const list = partsOf(schema, word);
    return list.length === 0
      ? []
      : [[word, list.map((part) => withoutFields(part, names, components))]];
  });
  return {
    ...schema,
    ...Object.fromEntries(parts),
    ...(isObject(properties)
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).filter(([name]) => !names.has(name)),
          ),
        }
      : {}),
    ...(kept.length === 0 ? {} : { required: kept }),
  };
}

function bothOf(one: Fields, other: Fields): Fields {
  return {
    properties: merged([one, other], (schemas) => ({ allOf: schemas })),
    required: new Set([...one.required, ...other.required]),
  };
}

function eitherOf(parts: readonly Fields[]): Fields {
  const properties = merged(parts, (schemas) => ({ anyOf: schemas }));
  const names = parts.flatMap(({ required }) => [...required]);
  return {
    properties,
    required: new Set(names.filter((name) => parts.every(({ required }) => required.has(name)))),
  };
}

function merged(
  parts: readonly Fields[],
  join: (schemas: readonly JsonSchema[]) => JsonSchema,
): ReadonlyMap<string, JsonSchema> {
  const names = new Set(parts.flatMap(({ properties }) => [...properties.keys()]));
  return new Map(
    [...names].map((name): [string, JsonSchema] => {
      const found = parts
        .map(({ properties }) => properties.get(name))
        .filter((schema) => schema !== undefined);
      const distinct = [
        ...new Map(found.map((schema) => [JSON.stringify(schema), schema])).values(),
      ];
      const [only = {}, ...others] = distinct;
      return [name, others.length === 0 ? only : join(distinct)];
    }),
  );
}

function partsOf(schema: JsonSchema, word: string): JsonSchema[] {
  const parts = schema[word];
  return Array.isArray(parts) ? parts.map(asSchema) : [];
}

/** Converts the boolean schemas `true` and `false` to objects. */
function asSchema(value: unknown): JsonSchema {
  if (isObject(value)) return value;
  return value === false ? { not: {} } : {};
}
