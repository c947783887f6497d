import { sortedBy } from "./canonical.ts";
import {
  asSchema,
  combinations,
  decodePointer,
  defined,
  isObject,
  type JsonSchema,
  mapParts,
  partsOf,
  type Schemas,
  unsaid,
} from "./schema.ts";

export type Components = ReturnType<typeof createComponents>;

const place = "#/components/schemas/";

export function componentRef(name: string): JsonSchema {
  return { $ref: `${place}${name}` };
}

export function createComponents(own: Schemas) {
  const schemas = new Map(Object.entries(own));
  /** By name, so that an equal schema gets the same name again. */
  const sources = new Map<string, string>();

  const nameFor = (wanted: string, source: string): readonly [name: string, isNew: boolean] => {
    for (let count = 1; ; count += 1) {
      const name = count === 1 ? wanted : `${wanted}.${count}`;
      if (sources.get(name) === source) return [name, false];
      if (schemas.has(name) || sources.has(name)) continue;
      sources.set(name, source);
      return [name, true];
    }
  };

  const embed = (schema: JsonSchema, base: string): JsonSchema => {
    const { $defs, ...root } = schema;
    const defs: JsonSchema = isObject($defs) ? $defs : {};
    const renamed = new Map<string, string>();
    const rewritten = (part: JsonSchema): JsonSchema => {
      const { $ref } = part;
      const inner = mapParts(part, rewritten);
      return typeof $ref === "string" && $ref.startsWith("#")
        ? { ...inner, $ref: target($ref) }
        : inner;
    };
    const target = (ref: string): string => {
      const [, key, rest = ""] = /^#\/\$defs\/([^/]+)(.*)$/.exec(ref) ?? [];
      // A reference to the root turns the whole schema into a component.
      if (key === undefined) return `${place}${named("", root, base)}${ref.slice(1)}`;
      const own = decodePointer(key);
      const definition = defs[own];
      const said = isObject(definition) ? definition : unsaid(`its library defines no ${own}`);
      return `${place}${named(own, said, isGenerated(own) ? `${base}.part` : own)}${rest}`;
    };
    const named = (own: string, definition: JsonSchema, wanted: string): string => {
      const before = renamed.get(own);
      if (before !== undefined) return before;
      const found = reached(definition, /"\$ref":"#\/\$defs\/([^"/]+)/g, (name) => defs[name]);
      const source = JSON.stringify([definition, [...found.values()]]);
      const [name, isNew] = nameFor(wanted.replaceAll(/[^A-Za-z0-9._-]/g, "_"), source);
      renamed.set(own, name);
      if (isNew) schemas.set(name, rewritten(definition));
      return name;
    };
    const whole = rewritten(root);
    const name = renamed.get("");
    return name === undefined ? whole : componentRef(name);
  };

  const resolve = (schema: JsonSchema): JsonSchema => {
    const { $ref, ...beside } = schema;
    if (typeof $ref !== "string") return schema;
    return { ...resolve(schemas.get($ref.slice(place.length)) ?? {}), ...beside };
  };

  return {
    /** Adds a schema's definitions; returns the schema with references to them. */
    embed,
    resolve,
    /** The schemas to which `used` refers, also indirectly, by name. */
    reachedFrom: (used: unknown): Schemas => {
      const reference = /"\$ref":"#\/components\/schemas\/([^"/]+)/g;
      // Safe cast: embedded schemas refer only to existing components.
      const found = reached(used, reference, (name) => schemas.get(name) as JsonSchema);
      return Object.fromEntries(sortedBy([...found], ([name]) => name));
    },
  };
}

/** Libraries generate numbered names, which may depend on the order in which modules load. */
function isGenerated(name: string): boolean {
  return /^(?:__schema|intersection|union|morph|alias)?\d+(?:\.open)?$/.test(name);
}

function reached<Found>(
  from: unknown,
  reference: RegExp,
  find: (name: string) => Found,
): ReadonlyMap<string, Found> {
  const found = new Map<string, Found>();
  const visit = (value: unknown) => {
    for (const [, match] of String(JSON.stringify(value)).matchAll(reference)) {
      const name = String(match);
      if (found.has(name)) continue;
      found.set(name, find(name));
      visit(found.get(name));
    }
  };
  visit(from);
  return found;
}

export interface Fields {
  readonly properties: ReadonlyMap<string, JsonSchema>;
  readonly required: ReadonlySet<string>;
}

/** Includes the members in references, `allOf` and alternatives. */
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

/** Also expands references. */
export function withoutFields(
  given: JsonSchema,
  names: ReadonlySet<string>,
  components: Components,
): JsonSchema {
  if (names.size === 0) return given;
  const { properties, required, ...schema } = components.resolve(given);
  const kept = Array.isArray(required) ? required.filter((name) => !names.has(String(name))) : [];
  const parts = combinations.flatMap((word) => {
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
    properties: merged([one, other], "allOf"),
    required: new Set([...one.required, ...other.required]),
  };
}

function eitherOf(parts: readonly Fields[]): Fields {
  const names = parts.flatMap(({ required }) => [...required]);
  return {
    properties: merged(parts, "anyOf"),
    required: new Set(names.filter((name) => parts.every(({ required }) => required.has(name)))),
  };
}

function merged(parts: readonly Fields[], word: string): ReadonlyMap<string, JsonSchema> {
  const byName = Map.groupBy(
    parts.flatMap(({ properties }) => [...properties]),
    ([name]) => name,
  );
  return new Map(
    [...byName].map(([name, all]) => {
      const distinct = new Map(all.map(([, schema]) => [JSON.stringify(schema), schema]));
      const [only = {}, ...others] = distinct.values();
      return [name, others.length === 0 ? only : { [word]: [only, ...others] }];
    }),
  );
}
