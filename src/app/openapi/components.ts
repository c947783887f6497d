import { sortedBy } from "./canonical.ts";
import {
  decodePointer,
  isObject,
  type JsonSchema,
  mapParts,
  type Schemas,
  unsaid,
} from "./schema.ts";

export interface Components {
  /** Adds a schema's definitions, and returns the schema with references to them. */
  embed(schema: JsonSchema, name: string): JsonSchema;
  /** Follows a reference. Returns other schemas unchanged. */
  resolve(schema: JsonSchema): JsonSchema;
  /** Returns the schemas that `used` refers to, directly or indirectly, sorted by name. */
  reachedFrom(used: unknown): Schemas;
}

const place = "#/components/schemas/";

export function componentRef(name: string): JsonSchema {
  return { $ref: `${place}${name}` };
}

export function createComponents(own: Schemas): Components {
  const schemas = new Map(Object.entries(own));
  /** Serialized schema by name, so that an equal schema gets the same name again. */
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
    embed,
    resolve,
    reachedFrom: (used) => {
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
