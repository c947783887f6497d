import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isObject, type JsonSchema, noTextMark } from "./schema.ts";

/**
 * Marks fields that requests send as strings, but whose schema rejects numbers or booleans as
 * strings: their JSON Schema does not show this.
 */
export async function withRefusedTexts(
  schema: StandardSchemaV1,
  said: JsonSchema,
  isSentAsText: (field: string) => boolean,
): Promise<JsonSchema> {
  const { properties } = said;
  if (!isObject(properties)) return said;
  const fields = await Promise.all(
    Object.entries(properties).map(async ([field, part]): Promise<[string, unknown]> => {
      const isTaken =
        !isSentAsText(field) || !isObject(part) || (await takesText(schema, field, part));
      return [field, isTaken ? part : { ...part, ...noTextMark }];
    }),
  );
  return { ...said, properties: Object.fromEntries(fields) };
}

/** Whether a field also accepts its values as strings, as far as the tried values show. */
async function takesText(
  schema: StandardSchemaV1,
  field: string,
  part: JsonSchema,
): Promise<boolean> {
  for (const value of valuesOf(part)) {
    const text = Array.isArray(value) ? value.map(String) : String(value);
    if ((await takes(schema, field, value)) && !(await takes(schema, field, text))) return false;
  }
  return true;
}

/** Values to try; the schema may reject some. None if the schema accepts strings anyway. */
function valuesOf(part: JsonSchema): readonly unknown[] {
  const { minimum, maximum, exclusiveMinimum, multipleOf, items } = part;
  const choices = [part["anyOf"], part["oneOf"]].flat().filter(isObject);
  if ([part, ...choices].some(isOfText)) return [];
  const given = [
    ...[
      part["const"],
      part["enum"],
      minimum,
      maximum,
      Number(exclusiveMinimum) + 1,
      multipleOf,
      0,
      1,
    ],
    [part["type"]].flat().includes("boolean") || undefined,
  ];
  return [
    ...given.flat().filter((value) => typeof value === "number" || typeof value === "boolean"),
    ...(isObject(items) ? valuesOf(items).map((value) => [value, value]) : []),
    ...choices.flatMap(valuesOf),
  ];
}

function isOfText({ type, enum: values, const: value }: JsonSchema): boolean {
  return (
    [type].flat().includes("string") ||
    [values, value].flat().some((one) => typeof one === "string")
  );
}

/** Whether a value is valid. Ignores issues of other fields. An exception counts as a rejection. */
async function takes(schema: StandardSchemaV1, field: string, value: unknown): Promise<boolean> {
  try {
    const { issues = [] } = await schema["~standard"].validate({ [field]: value });
    return !issues.some(
      ({ path: [first] = [] }) => (typeof first === "object" ? first.key : first) === field,
    );
  } catch {
    return false;
  }
}
