/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a schema reads, or what it gives. */
export type Side = "input" | "output";

/** What the reader of a library's schemas goes by. */
export interface ReadOptions {
  readonly side: Side;
  /** Loads a function of a package of the application's. @throws Error where it is not there. */
  readonly load: (
    name: string,
    member: string,
  ) => Promise<(...given: readonly unknown[]) => unknown>;
}

/** Says in a schema that nothing was said, and why. */
export const unsaidMark = "x-keelson-unsaid";

/** Says of a field that requests have as a text that its schema refuses texts. */
export const noTextMark = { "x-keelson-takes-text": false } as const;

const annotations: readonly string[] = [
  "$schema",
  "$defs",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "id",
];

/** Whether a schema only describes: everything fits it. */
export function saysNothing(schema: JsonSchema): boolean {
  return Object.keys(schema).every((name) => annotations.includes(name));
}

/** Stands where no JSON Schema says what is there: everything fits, and a reader sees that nothing was said. */
export function unsaid(why: string): JsonSchema {
  return { description: `Not described: ${why}`, [unsaidMark]: why };
}

/** A `Date` as JSON has it. */
export function dateTime(): JsonSchema {
  return { type: "string", format: "date-time" };
}

/** Why a `Date` cannot be asked for. */
export const noDateArrives = "no Date arrives in JSON; take a date-time text, and convert it";

/** Changes the schemas in a schema, at any of its words; `change` gets each with the way to it. */
export function mapParts(
  schema: JsonSchema,
  change: (part: JsonSchema, way: readonly string[]) => JsonSchema,
): JsonSchema {
  const one = (value: unknown, way: readonly string[]): unknown => {
    if (Array.isArray(value))
      return value.map((element, index) => one(element, [...way, String(index)]));
    return isObject(value) ? change(value, way) : value;
  };
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, one(value, [name])]),
  );
}

/** Whether a value is an object, of JSON. */
export function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
