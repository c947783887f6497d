import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isObject, type JsonSchema, noTextMark } from "./schema.ts";

/**
 * The schema of an input with a mark at each field that is sent as a text, and whose schema takes numbers or booleans, but no text
 * of one: JSON Schema has the same words for what converts a text and for what refuses it.
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

/** Whether no value is known that a field takes as it is, and refuses as a text. */
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

/** Values to try, of which the schema may refuse some. Where it takes texts as well, there is nothing to try. */
function valuesOf(part: JsonSchema): readonly unknown[] {
  const { minimum, maximum, exclusiveMinimum, multipleOf, items } = part;
  const choices = [part["anyOf"], part["oneOf"]].flat().filter(isObject);
  if ([part, ...choices].some(isOfText)) return [];
  const given = [
    part["const"],
    part["enum"],
    minimum,
    maximum,
    Number(exclusiveMinimum) + 1,
    multipleOf,
  ].flat();
  return [
    ...[...given, 0, 1, ...([part["type"]].flat().includes("boolean") ? [true] : [])].filter(
      (value) => typeof value === "number" || typeof value === "boolean",
    ),
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

/** Whether one field fits. What fails elsewhere says nothing of it; a schema that throws has said no. */
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
