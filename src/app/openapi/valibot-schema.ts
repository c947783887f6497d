import type { StandardSchemaV1 } from "@standard-schema/spec";
import { portablePattern } from "./portable-pattern.ts";
import { dateTime, type JsonSchema, noDateArrives, type ReadOptions, unsaid } from "./schema.ts";

type Said = Record<string, unknown>;

/** What `@valibot/to-json-schema` hands to overrides. */
interface SaidSchema {
  readonly valibotSchema: { readonly type: string; readonly default?: unknown };
  readonly jsonSchema: Said;
  readonly errors: readonly string[] | undefined;
}
interface SaidAction {
  readonly valibotAction: {
    readonly type: string;
    readonly kind: string;
    readonly requirement?: unknown;
  };
  readonly jsonSchema: Said;
  readonly errors: readonly string[] | undefined;
}

/** The JSON Schema of a schema of valibot, by `@valibot/to-json-schema`. */
export async function valibotSchema(
  schema: StandardSchemaV1,
  { side, load }: ReadOptions,
): Promise<JsonSchema> {
  const toJsonSchema = await load("@valibot/to-json-schema", "toJsonSchema");
  const overrideSchema = ({
    valibotSchema: { type, default: given },
    jsonSchema,
    errors,
  }: SaidSchema) => {
    if (type === "date") return side === "output" ? dateTime() : unsaid(noDateArrives);
    if (type === "undefined" || type === "void") return { not: {} };
    // What a function gives may change: it is no part of a contract.
    if (typeof given === "function") delete jsonSchema["default"];
    return errors === undefined ? jsonSchema : unsaid(`${errors.join(" ")} Use another`);
  };
  const overrideAction = ({
    valibotAction: { kind, type, requirement },
    jsonSchema,
    errors,
  }: SaidAction) => {
    if (shorterTimes.includes(type) && requirement instanceof RegExp) {
      const { format: _, ...said } = jsonSchema;
      return portable({ ...said, pattern: requirement.source });
    }
    if (errors === undefined) return portable(jsonSchema);
    // A check that cannot be said leaves the rest true; a pattern without its flags would not.
    if (type === "regex") delete jsonSchema["pattern"];
    if (kind !== "transformation" || keepsType.includes(type) || side === "input")
      return jsonSchema;
    return unsaid(
      `what valibot's ${type} gives is known to its code alone; put a schema behind it in the pipe`,
    );
  };
  const options = {
    typeMode: side,
    target: "draft-2020-12",
    errorMode: "ignore",
    overrideSchema,
    overrideAction,
  };
  return toJsonSchema(schema, options) as JsonSchema; // safe: that is what it makes
}

function portable({ pattern, ...rest }: Said): Said {
  const said = typeof pattern === "string" ? portablePattern(pattern) : undefined;
  return said === undefined ? rest : { ...rest, pattern: said };
}

/** Times without seconds or zone, which the formats of RFC 3339 have. */
const shorterTimes: readonly string[] = ["iso_date_time", "iso_time"];

/** Transformations of a text to a text, and those for types alone. */
const keepsType: readonly string[] = [
  "brand",
  "flavor",
  "readonly",
  "trim",
  "trim_start",
  "trim_end",
  "to_lower_case",
  "to_upper_case",
  "normalize",
];
