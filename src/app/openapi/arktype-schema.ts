import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  bytes,
  dateOf,
  defined,
  hasFlags,
  type JsonSchema,
  mapParts,
  portablePattern,
  type ReadOptions,
  target,
  unsaid,
} from "./schema.ts";

interface ArkType extends StandardSchemaV1 {
  readonly in: ArkType;
  readonly out: ArkType;
  toJsonSchema(options: object): JsonSchema;
  select(
    selector: "pattern",
  ): readonly { readonly inner: { readonly rule: string; readonly flags?: string } }[];
}

interface Said {
  readonly code: string;
  readonly base: JsonSchema;
  readonly unit?: unknown;
  readonly proto?: unknown;
}

export function isArkType(schema: StandardSchemaV1): schema is ArkType {
  return (
    schema["~standard"].vendor === "arktype" &&
    typeof (schema as Partial<ArkType>).toJsonSchema === "function"
  );
}

export function arktypeSchema(schema: ArkType, { side }: ReadOptions): JsonSchema {
  const kept = ({ base }: Said) => base;
  const noSchema = ({ code }: Said) =>
    unsaid(`ArkType's ${code} has no JSON Schema; use another type`);
  const said = (type: ArkType, morph: (context: Said) => JsonSchema) => {
    const fallback = {
      morph,
      date: () => dateOf(side),
      unit: ({ unit }: Said) =>
        unit === undefined
          ? { not: {} }
          : unsaid("a unit is a value that JSON does not have; use another"),
      proto: (said: Said) => (side === "input" && said.proto === File ? bytes : noSchema(said)),
      // Omits a narrowing predicate: the rest of the schema remains correct.
      predicate: kept,
      patternIntersection: kept,
      default: noSchema,
    };
    return type.toJsonSchema({ target, dialect: null, fallback });
  };
  const all = schema.select("pattern").map(({ inner }) => inner);
  const flagged = new Set(all.filter(({ flags }) => hasFlags(flags)).map(({ rule }) => rule));
  const patterns = new Map(
    all.map(({ rule }) => [rule, flagged.has(rule) ? undefined : portablePattern(rule)] as const),
  );
  if (side === "input") return withPatterns(said(schema.in, kept), patterns);
  const converted = said(schema, () => ({ [mark]: true }));
  return withPatterns(named(said(schema.out, kept), converted), patterns);
}

const mark = "x-keelson-converted";

/** In `out`, a conversion looks like a declared `unknown`; only `converted` marks it. */
function named(out: JsonSchema, converted: unknown): JsonSchema {
  if (Object.keys(out).length === 0 && JSON.stringify(converted)?.includes(mark) === true) {
    return unsaid("the output of a conversion cannot be derived from its code; add .to(type)");
  }
  return mapParts(out, (part, way) => named(part, way.reduce(memberOf, converted)));
}

function memberOf(value: unknown, name: string): unknown {
  // Safe cast: any member of an object can be read.
  return typeof value === "object" && value !== null ? (value as JsonSchema)[name] : undefined;
}

function withPatterns(
  schema: JsonSchema,
  patterns: ReadonlyMap<unknown, string | undefined>,
): JsonSchema {
  if (patterns.size === 0) return schema;
  const { pattern, ...rest } = mapParts(schema, (part) => withPatterns(part, patterns));
  return defined({ ...rest, pattern: patterns.has(pattern) ? patterns.get(pattern) : pattern });
}
