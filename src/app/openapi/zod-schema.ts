import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { openIntersections } from "./intersections.ts";
import { portablePattern } from "./portable-pattern.ts";
import {
  dateTime,
  type JsonSchema,
  mapParts,
  noDateArrives,
  type ReadOptions,
  saysNothing,
  unsaid,
} from "./schema.ts";

/** A schema of zod 4 or of zod/mini, as far as it is looked at. */
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

/** What zod hands to an override: what it would say itself, to be changed in place. */
interface Said {
  readonly zodSchema: ZodSchema;
  readonly jsonSchema: Record<string, unknown>;
}

/** Whether a schema is one of zod 4, or of zod/mini. */
export function isZod(schema: StandardSchemaV1): schema is ZodSchema {
  return schema["~standard"].vendor === "zod" && "_zod" in schema;
}

/** The JSON Schema of a schema of zod; a part with a type of its own in `.meta()` says itself by it. */
export async function zodSchema(
  schema: ZodSchema,
  { side, load }: ReadOptions,
): Promise<JsonSchema> {
  const override = ({ zodSchema: { _zod }, jsonSchema }: Said) => {
    const { def } = _zod;
    if ("default" in jsonSchema) dropChangingDefault(def, jsonSchema);
    // It says how the code treats a value, and in a JSON Schema that no request may have it.
    if (def.type === "readonly") delete jsonSchema["readOnly"];
    sayPatterns(untrueOf(_zod), jsonSchema);
    const said = inJson(def, side);
    if (typeof said === "string") jsonSchema[mark] = said;
    // Zod says another value for one that JSON does not have.
    if (typeof said === "string" && def.type === "literal")
      for (const name of ["const", "enum", "type"]) delete jsonSchema[name];
    if (typeof said === "object" && !isSaid(jsonSchema)) Object.assign(jsonSchema, said);
  };
  const options = { unrepresentable: "any", override };
  const { jsonSchema } = schema["~standard"] as Partial<StandardJSONSchemaV1.Props>; // safe: it may be there, or not
  if (jsonSchema !== undefined)
    return openIntersections(
      named(jsonSchema[side]({ target: "draft-2020-12", libraryOptions: options })),
    );
  // Of zod/mini, and of zod before 4.2.
  const toJSONSchema = await load("zod", "toJSONSchema");
  // Safe: that is what it makes.
  return openIntersections(
    named(toJSONSchema(schema, { ...options, io: side, target: "draft-2020-12" }) as JsonSchema),
  );
}

const mark = "x-keelson-zod";
function isSaid({ [mark]: _, ...schema }: JsonSchema): boolean {
  return !saysNothing(schema);
}

/** Names the parts that nothing says; what `.meta()` says of one is kept. */
function named(schema: JsonSchema): JsonSchema {
  const { [mark]: why, ...said } = schema;
  if (typeof why === "string" && !isSaid(said)) return { ...said, ...unsaid(why) };
  return mapParts(said, named);
}

/** What zod says nothing of: as JSON has it, or why it cannot; `undefined` for what is anything. */
function inJson(def: Definition, side: ReadOptions["side"]): JsonSchema | string | undefined {
  const { type } = def;
  switch (type) {
    case "date":
      // Only what is converted takes a text for a date.
      if (side === "output" || def.coerce === true) return dateTime();
      return noDateArrives;
    case "undefined":
    case "void":
      return { not: {} };
    case "nan":
      return side === "output" ? { type: "null" } : { not: {} };
    case "transform":
      return "what a transformation gives is known to its code alone; put .pipe(schema) behind it";
    case "literal":
      if (def.values?.every((value) => typeof value !== "bigint" && value !== undefined) === true)
        return undefined;
      return "a literal is a bigint, or undefined, which JSON does not have";
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

/** A default that is made anew for each value is no part of a contract: an ID, or the time. */
function dropChangingDefault(def: Definition, jsonSchema: Record<string, unknown>): void {
  const first = JSON.stringify(def.defaultValue);
  const before = Date.now();
  while (Date.now() === before); // a millisecond, once in the life of a document
  if (JSON.stringify(def.defaultValue) !== first) delete jsonSchema["default"];
}

/**
 * The patterns that would forbid what a schema takes: those with flags, which a JSON Schema has not, and zod's of IPv6, which
 * lacks `::ffff:192.0.2.1`.
 */
function untrueOf({ def, bag }: ZodInternals): ReadonlySet<string> {
  const defs = [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)];
  const ofFormat = defs
    .filter(({ format }) => format === "ipv6" || format === "cidrv6")
    .map(({ pattern }) => pattern);
  const all = [...defs.map(({ pattern }) => pattern), ...(bag.patterns ?? [])].filter(
    (pattern) => pattern !== undefined,
  );
  return new Set(
    all
      .filter((one) => ofFormat.includes(one) || /[imsv]/.test(one.flags))
      .map(({ source }) => source),
  );
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
  // RFC 3339 has no fractions, which zod takes: its pattern says all of it.
  if (jsonSchema["format"] === "duration" && "pattern" in jsonSchema) delete jsonSchema["format"];
  const all = jsonSchema["allOf"];
  if (!Array.isArray(all)) return;
  const said = all.filter(say);
  // Zod goes on with a list that it knows: of an intersection it makes one object.
  if (said.length === all.length) return;
  if (said.length === 0) delete jsonSchema["allOf"];
  else jsonSchema["allOf"] = said;
}
