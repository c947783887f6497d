import { isObject, type JsonSchema, mapParts, unsaid } from "./schema.ts";

/** The schemas that a document has names for. */
export interface Components {
  /** Takes a schema's own definitions in, and gives it with references to where they are now. */
  embed(schema: JsonSchema, name: string): JsonSchema;
  /** What a schema is, where it is a reference. */
  resolve(schema: JsonSchema): JsonSchema;
  /** Those that `used` refers to, by name, in the order of their names. */
  reachedFrom(used: unknown): Readonly<Record<string, JsonSchema>>;
}

const place = "#/components/schemas/";

/** Creates {@link Components} that begin with schemas of the document's own. */
export function createComponents(own: Readonly<Record<string, JsonSchema>>): Components {
  const schemas = new Map(Object.entries(own));
  /** What each name was given for, so that the same schema gets the same name. */
  const sources = new Map<string, string>();

  const nameFor = (
    wanted: string,
    source: string,
  ): { readonly name: string; readonly isNew: boolean } => {
    for (let count = 1; ; count += 1) {
      const name = count === 1 ? wanted : `${wanted}.${count}`;
      if (sources.get(name) === source) return { name, isNew: false };
      if (schemas.has(name) || sources.has(name)) continue;
      sources.set(name, source);
      return { name, isNew: true };
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
      // A reference into the whole makes a component of it.
      if (key === undefined) return `${place}${named("", root, base)}${ref.slice(1)}`;
      const own = decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~");
      const definition = defs[own];
      const said = isObject(definition) ? definition : unsaid(`its library defines no ${own}`);
      return `${place}${named(own, said, isGenerated(own) ? `${base}.part` : own)}${rest}`;
    };
    const named = (own: string, definition: JsonSchema, wanted: string): string => {
      const before = renamed.get(own);
      if (before !== undefined) return before;
      const source = JSON.stringify([definition, reached(definition, defs)]);
      const { name, isNew } = nameFor(wanted.replaceAll(/[^A-Za-z0-9._-]/g, "_"), source);
      renamed.set(own, name);
      if (isNew) schemas.set(name, rewritten(definition));
      return name;
    };
    const whole = rewritten(root);
    // A schema that has itself inside is one component, wherever it stands.
    const name = renamed.get("");
    return name === undefined ? whole : { $ref: `${place}${name}` };
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
      const names = new Set<string>();
      const visit = (value: unknown) => {
        for (const name of namesIn(value, /"\$ref":"#\/components\/schemas\/([^"/]+)/g)) {
          if (names.has(name)) continue;
          names.add(name);
          visit(schemas.get(name));
        }
      };
      visit(used);
      // Safe: each is the name of one.
      return Object.fromEntries(
        [...names].sort().map((name) => [name, schemas.get(name) as JsonSchema]),
      );
    },
  };
}

/** Names that libraries number: they say nothing, and may change with the order in which modules are loaded. */
function isGenerated(name: string): boolean {
  return /^(?:__schema|intersection|union|morph|alias)?\d+(?:\.open)?$/.test(name);
}

/** The definitions that one refers to, in the order in which it does. */
function reached(definition: JsonSchema, defs: JsonSchema): unknown[] {
  const found = new Map<string, unknown>();
  const visit = (value: unknown) => {
    for (const name of namesIn(value, /"\$ref":"#\/\$defs\/([^"/]+)/g)) {
      if (found.has(name)) continue;
      found.set(name, defs[name]);
      visit(defs[name]);
    }
  };
  visit(definition);
  return [...found.values()];
}

function namesIn(value: unknown, reference: RegExp): string[] {
  return [...String(JSON.stringify(value)).matchAll(reference)].map((match) => String(match[1]));
}
