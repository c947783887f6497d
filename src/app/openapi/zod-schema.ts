import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import {
  combinations,
  dateTime,
  hasFlags,
  isObject,
  type JsonSchema,
  mapParts,
  noDateArrives,
  partsOf,
  portablePattern,
  type ReadOptions,
  saysNothing,
  target,
  unsaid,
} from "./schema.ts";

interface ZodSchema extends StandardSchemaV1 {
  readonly _zod: ZodInternals;
}

interface ZodInternals {
  readonly def: Definition;
  readonly bag: { readonly patterns?: Iterable<RegExp> };
}

interface Definition {
  readonly type: string;
  readonly coerce?: boolean;
  readonly values?: readonly unknown[];
  readonly defaultValue?: unknown;
  readonly format?: string;
  readonly pattern?: RegExp;
  readonly checks?: readonly {
    readonly _zod: { readonly def: Pick<Definition, "format" | "pattern"> };
  }[];
}

interface Said {
  readonly zodSchema: ZodSchema;
  readonly jsonSchema: Record<string, unknown>;
}

export function isZod(schema: StandardSchemaV1): schema is ZodSchema {
  return schema["~standard"].vendor === "zod" && "_zod" in schema;
}

/** A part with a type in `.meta()` gets that type. */
export async function zodSchema(
  schema: ZodSchema,
  { side, load, laterMoment }: ReadOptions,
): Promise<JsonSchema> {
  const defaults = new Map<Definition, string>();
  const override = ({ zodSchema: { _zod }, jsonSchema }: Said) => {
    const { def } = _zod;
    if ("default" in jsonSchema) dropChangingDefault(def, jsonSchema, defaults);
    // In JSON Schema, `readOnly` members cannot be sent; in zod, code cannot change them.
    if (def.type === "readonly") delete jsonSchema["readOnly"];
    sayPatterns(untrueOf(_zod), jsonSchema);
    const said = inJson(def, side);
    if (typeof said === "string") jsonSchema[mark] = said;
    // zod replaces a value that JSON cannot represent.
    if (typeof said === "string" && def.type === "literal")
      for (const name of ["const", "enum", "type"]) delete jsonSchema[name];
    if (typeof said === "object" && !isSaid(jsonSchema)) Object.assign(jsonSchema, said);
  };
  const options = { unrepresentable: "any", override };
  // Safe cast: it only makes `jsonSchema` optional.
  const { jsonSchema } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props>;
  // zod/mini, and zod before 4.2, have no `jsonSchema`.
  const toJSONSchema = jsonSchema === undefined ? await load("zod", "toJSONSchema") : undefined;
  const convert = () =>
    // Safe cast: both return a JSON Schema.
    (jsonSchema?.[side]({ target, libraryOptions: options }) ??
      toJSONSchema?.(schema, { ...options, io: side, target })) as JsonSchema;
  const first = convert();
  const said = defaults.size === 0 ? first : await laterMoment().then(convert);
  return openIntersections(named(said));
}

const mark = "x-keelson-zod";
function isSaid({ [mark]: _, ...schema }: JsonSchema): boolean {
  return !saysNothing(schema);
}

/** Parts that cannot be described keep their descriptions from `.meta()`. */
function named(schema: JsonSchema): JsonSchema {
  const { [mark]: why, ...said } = schema;
  if (typeof why === "string" && !isSaid(said)) return { ...said, ...unsaid(why) };
  return mapParts(said, named);
}

/** For a type that zod omits: its JSON form, or the reason why JSON cannot represent it. */
function inJson(
  { type, coerce, values }: Definition,
  side: ReadOptions["side"],
): JsonSchema | string | undefined {
  switch (type) {
    case "date":
      // As input, only a coerced date accepts a string.
      return side === "output" || coerce === true ? dateTime() : noDateArrives;
    case "undefined":
    case "void":
      return { not: {} };
    case "nan":
      return side === "output" ? { type: "null" } : { not: {} };
    case "transform":
      return "the output of a transformation cannot be derived from its code; add .pipe(schema)";
    case "literal":
      return values?.some((value) => typeof value === "bigint" || value === undefined) === false
        ? undefined
        : "a literal is a bigint, or undefined, which JSON does not have";
    case "bigint":
    case "symbol":
    case "map":
    case "set":
    case "function":
    case "custom":
      return `zod's ${type} has no JSON Schema; use another, or give it .meta({ type: ... })`;
    default:
      return undefined;
  }
}

/**
 * A generated default, an ID or a time, is not part of the contract. Two conversions at different
 * times show it: `defaults` has the values of the first.
 */
function dropChangingDefault(
  def: Definition,
  jsonSchema: Record<string, unknown>,
  defaults: Map<Definition, string>,
): void {
  const value = String(JSON.stringify(def.defaultValue));
  const first = defaults.get(def) ?? value;
  if (first !== value) delete jsonSchema["default"];
  defaults.set(def, first); // kept: copies by `.describe()` and `.meta()` share a definition
}

/** Patterns that reject valid values: those with flags, and zod's for IPv6 (`::ffff:192.0.2.1`). */
function untrueOf({ def, bag }: ZodInternals): ReadonlySet<string> {
  const defs = [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)];
  const ofFormat = defs.filter(({ format }) => format === "ipv6" || format === "cidrv6");
  const flagged = [...defs.map(({ pattern }) => pattern), ...(bag.patterns ?? [])].filter(
    (pattern) => hasFlags(pattern?.flags),
  );
  const untrue = [...ofFormat.map(({ pattern }) => pattern), ...flagged];
  return new Set(untrue.filter((one) => one !== undefined).map(({ source }) => source));
}

function sayPatterns(untrue: ReadonlySet<string>, jsonSchema: Record<string, unknown>): void {
  const say = (part: Record<string, unknown>) => {
    const { pattern } = part;
    if (typeof pattern !== "string") return true;
    const portable = untrue.has(pattern) ? undefined : portablePattern(pattern);
    if (portable === undefined) delete part["pattern"];
    else part["pattern"] = portable;
    return Object.keys(part).length > 0;
  };
  say(jsonSchema);
  // RFC 3339 durations have no fractions, but zod's do. zod's pattern covers the whole format.
  if (jsonSchema["format"] === "duration" && "pattern" in jsonSchema) delete jsonSchema["format"];
  const all = jsonSchema["allOf"];
  if (!Array.isArray(all)) return;
  const said = all.filter(say);
  // Replaced only if needed, because zod later merges the members of this array into one object.
  if (said.length === all.length) return;
  if (said.length === 0) delete jsonSchema["allOf"];
  else jsonSchema["allOf"] = said;
}

/**
 * zod rejects a member of an intersection only if no side declares it; in JSON Schema, a closed
 * side rejects the members of others. So each closed definition gets an open counterpart.
 */
function openIntersections(root: JsonSchema): JsonSchema {
  const definitions = isObject(root["$defs"]) ? root["$defs"] : {};
  const open = new Map<string, JsonSchema>();
  const isClosed = (part: JsonSchema, way: readonly string[] = []): boolean => {
    const name = referenceOf(part);
    const definition = name !== undefined && !way.includes(name) ? definitions[name] : undefined;
    if (name !== undefined && isObject(definition)) return isClosed(definition, [...way, name]);
    if (part["additionalProperties"] === false) return true;
    return combinations.some((word) => partsOf(part, word).some((one) => isClosed(one, way)));
  };
  const opened = (part: JsonSchema): JsonSchema => {
    if (!isClosed(part)) return part;
    const name = referenceOf(part);
    if (name !== undefined) return { ...part, $ref: `${place}${openName(name)}` };
    const { additionalProperties, ...rest } = part;
    const own = additionalProperties === false ? rest : part;
    return mapParts(own, (one, [word]) =>
      combinations.includes(String(word)) ? opened(one) : one,
    );
  };
  const openName = (name: string): string => {
    const wanted = `${name}.open`;
    if (!open.has(wanted)) {
      open.set(wanted, {}); // the definition may refer to itself
      // Safe cast: only existing definitions can be closed.
      open.set(wanted, said(opened(definitions[name] as JsonSchema)));
    }
    return wanted;
  };
  const said = (given: JsonSchema): JsonSchema => {
    const sides = partsOf(given, "allOf");
    if (!sides.some((side) => isClosed(side))) return mapParts(given, said);
    const schema = { ...given, allOf: sides.map(opened) };
    return mapParts(
      sides.every((side) => isClosed(side)) ? { ...schema, unevaluatedProperties: false } : schema,
      said,
    );
  };
  const schema = said(root);
  return open.size === 0
    ? schema
    : { ...schema, $defs: { ...Object(schema["$defs"]), ...Object.fromEntries(open) } };
}

const place = "#/$defs/";

function referenceOf({ $ref }: JsonSchema): string | undefined {
  return typeof $ref === "string" && $ref.startsWith(place) ? $ref.slice(place.length) : undefined;
}
