import { isRecord as isObject } from "../../base/errors/option-table.ts";

export { defined } from "../../base/types/defined.ts";
export { isObject };

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;
export type Schemas = Readonly<Record<string, JsonSchema>>;

/** Values that a schema accepts, or returns. */
export type Side = "input" | "output";

export interface ReadOptions {
  readonly side: Side;
  /** @throws Error if the package is not installed. */
  readonly load: (name: string, member: string) => Promise<ImportedFunction>;
  /** Waits until the clock has moved. Concurrent callers share one wait. */
  readonly laterMoment: () => Promise<void>;
}

export type ImportedFunction = (...given: readonly unknown[]) => unknown;

export const target = "draft-2020-12";

export const unsaidMark = "x-keelson-unsaid";

/** Marks a field that requests send as a string although its schema rejects strings. */
export const noTextMark = { "x-keelson-takes-text": false } as const;

const annotations: ReadonlySet<string> = new Set(
  "$schema $defs title description default examples deprecated readOnly writeOnly id".split(" "),
);

export const combinations: readonly string[] = ["allOf", "anyOf", "oneOf"];

/** A schema with only annotations accepts any value. */
export function saysNothing(schema: JsonSchema): boolean {
  return Object.keys(schema).every((name) => annotations.has(name));
}

export const text: JsonSchema = { type: "string" };
/** Bytes of a body, or a file of `multipart/form-data`. */
export const bytes: JsonSchema = { type: "string", format: "binary" };

/** Members whose names end with `?` are optional. */
export function object(members: Schemas, more: JsonSchema = {}): JsonSchema {
  const names = Object.keys(members);
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name.replace("?", ""), members[name]])),
    required: names.filter((name) => !name.endsWith("?")),
    ...more,
  };
}

/** Placeholder for what JSON Schema cannot express. Accepts any value. */
export function unsaid(why: string): JsonSchema {
  return { description: `Not described: ${why}`, [unsaidMark]: why };
}

export function dateTime(): JsonSchema {
  return { type: "string", format: "date-time" };
}

export function dateOf(side: Side): JsonSchema {
  return side === "output" ? dateTime() : unsaid(noDateArrives);
}

export const noDateArrives = "no Date arrives in JSON; take a date-time text, and convert it";

/** Flags that JSON Schema lacks; without them, a pattern would reject valid values. */
export const hasFlags = (flags = "") => /[imsv]/.test(flags);

export function partsOf(schema: JsonSchema, word: string): JsonSchema[] {
  const parts = schema[word];
  return Array.isArray(parts) ? parts.map(asSchema) : [];
}

export function asSchema(value: unknown): JsonSchema {
  if (isObject(value)) return value;
  return value === false ? { not: {} } : {};
}

export function decodePointer(part: string): string {
  return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Maps the direct subschemas, at any keyword. `change` receives each with its path. */
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

/** Validators compile patterns in Unicode mode, which rejects some escapes, for example `\-`. */
export function portablePattern(source: string): string | undefined {
  return [source, rewritten(source)].find(isOfUnicodeMode);
}

/** Removes unnecessary escapes, and escapes a `-` that follows a class such as `\w`. */
function rewritten(source: string): string {
  let isInSet = false;
  return source.replaceAll(/\\[\s\S]-?|[[\]]/g, (token) => {
    if (token === "[" || token === "]") {
      isInSet = token === "[";
      return token;
    }
    const [, escaped = "", dash = ""] = token;
    const isKept = kept.test(escaped) || (isInSet && escaped === "-");
    const isOfClass = isInSet && /[dsw]/i.test(escaped);
    return `${isKept ? "\\" : ""}${escaped}${isOfClass && dash !== "" ? "\\-" : dash}`;
  });
}

/** Characters whose escapes may have a meaning. A comma is part of a quantifier. */
const kept = /[A-Za-z0-9^$\\.*+?()[\]{}|/,]/;

function isOfUnicodeMode(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}
