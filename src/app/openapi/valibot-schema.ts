import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  bytes,
  dateOf,
  defined,
  type JsonSchema,
  portablePattern,
  type ReadOptions,
  target,
  unsaid,
} from "./schema.ts";

type Said = Record<string, unknown>;

interface Context {
  readonly jsonSchema: Said;
  readonly errors: readonly string[] | undefined;
}
type SchemaContext = Context & {
  readonly valibotSchema: { type: string; default?: unknown; class?: unknown };
};
type ActionContext = Context & {
  readonly valibotAction: { type: string; kind: string; requirement?: unknown };
};

export async function valibotSchema(
  schema: StandardSchemaV1,
  { side, load }: ReadOptions,
): Promise<JsonSchema> {
  const toJsonSchema = await load("@valibot/to-json-schema", "toJsonSchema");
  const overrideSchema = ({ valibotSchema, jsonSchema, errors }: SchemaContext) => {
    const { type, default: given } = valibotSchema;
    if (type === "date") return dateOf(side);
    if (side === "input" && (type === "file" || valibotSchema.class === File)) return bytes;
    if (type === "undefined" || type === "void") return { not: {} };
    // A computed default may change, so it is not part of the contract.
    if (typeof given === "function") delete jsonSchema["default"];
    return errors === undefined ? jsonSchema : unsaid(`${errors.join(" ")} Use another`);
  };
  const overrideAction = ({ valibotAction, jsonSchema, errors }: ActionContext) => {
    const { kind, type, requirement } = valibotAction;
    if (shorterTimes.includes(type) && requirement instanceof RegExp) {
      const { format: _, ...said } = jsonSchema;
      return portable({ ...said, pattern: requirement.source });
    }
    if (errors === undefined) return portable(jsonSchema);
    // The schema stays correct without this check, but not with a pattern without its flags.
    if (type === "regex") delete jsonSchema["pattern"];
    if (kind !== "transformation" || keepsType.includes(type) || side === "input")
      return jsonSchema;
    return unsaid(
      `the output of valibot's ${type} cannot be derived from its code; add a schema behind it in the pipe`,
    );
  };
  const options = { typeMode: side, target, errorMode: "ignore", overrideSchema, overrideAction };
  return toJsonSchema(schema, options) as JsonSchema; // safe: the function returns a JSON Schema
}

function portable({ pattern, ...rest }: Said): JsonSchema {
  return defined({
    ...rest,
    pattern: typeof pattern === "string" ? portablePattern(pattern) : undefined,
  });
}

/** Times without the seconds or the zone that the formats of RFC 3339 require. */
const shorterTimes: readonly string[] = ["iso_date_time", "iso_time"];

const keepsType: readonly string[] = [
  ...["brand", "flavor", "readonly", "normalize"],
  ...["trim", "trim_start", "trim_end", "to_lower_case", "to_upper_case"],
];
