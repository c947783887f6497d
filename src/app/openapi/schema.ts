/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Side of a schema: the values that it accepts, or the values that it returns. */
export type Side = "input" | "output";

/** Options of the converters for schema libraries. */
export interface ReadOptions {
  readonly side: Side;
  /**
   * Loads a function from one of the application's packages. @throws Error if the package is
   * missing.
   */
  readonly load: (
    name: string,
    member: string,
  ) => Promise<(...given: readonly unknown[]) => unknown>;
}

/** Keyword that gives the reason why a part is not described. */
export const unsaidMark = "x-keelson-unsaid";

/** Marks a field that requests send as a string although its schema rejects strings. */
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

/** Checks whether a schema only contains annotations, so that it accepts any value. */
export function saysNothing(schema: JsonSchema): boolean {
  return Object.keys(schema).every((name) => annotations.includes(name));
}

/**
 * Returns a placeholder for a part that JSON Schema cannot express. It accepts any value and shows
 * the reason.
 */
export function unsaid(why: string): JsonSchema {
  return { description: `Not described: ${why}`, [unsaidMark]: why };
}

export function dateTime(): JsonSchema {
  return { type: "string", format: "date-time" };
}

/** Reason why an input cannot contain a `Date`. */
export const noDateArrives = "no Date arrives in JSON; take a date-time text, and convert it";

/** Maps the direct subschemas of a schema, at any keyword. `change` receives each with its path. */
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

type Defined<Members> = {
  readonly [Name in keyof Members as undefined extends Members[Name] ? never : Name]: Members[Name];
} & {
  readonly [Name in keyof Members as undefined extends Members[Name] ? Name : never]?: Exclude<
    Members[Name],
    undefined
  >;
};

/** Drops members that are `undefined`, as JSON does. */
export function defined<Members extends object>(members: Members): Defined<Members> {
  const kept = Object.entries(members).filter(([, member]) => member !== undefined);
  return Object.fromEntries(kept) as Defined<Members>; // safe: of the members, only these are left
}

export function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
