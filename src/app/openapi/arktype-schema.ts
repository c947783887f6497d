import type { StandardSchemaV1 } from "@standard-schema/spec";
import { portablePattern } from "./portable-pattern.ts";
import {
  dateTime,
  type JsonSchema,
  mapParts,
  noDateArrives,
  type ReadOptions,
  unsaid,
} from "./schema.ts";

/** A type of ArkType, as far as it is looked at. */
interface ArkType extends StandardSchemaV1 {
  readonly in: ArkType;
  readonly out: ArkType;
  toJsonSchema(options: object): JsonSchema;
  select(
    selector: "pattern",
  ): readonly { readonly inner: { readonly rule: string; readonly flags?: string } }[];
}

/** What ArkType hands to a fallback: what it says so far. */
interface Said {
  readonly code: string;
  readonly base: JsonSchema;
}

/** Whether a schema is a type of ArkType. */
export function isArkType(schema: StandardSchemaV1): schema is ArkType {
  return (
    schema["~standard"].vendor === "arktype" &&
    typeof (schema as Partial<ArkType>).toJsonSchema === "function"
  );
}

/** The JSON Schema of a type of ArkType. */
export function arktypeSchema(schema: ArkType, { side }: ReadOptions): JsonSchema {
  const said = (type: ArkType, morph: (context: Said) => JsonSchema) => {
    const fallback = {
      morph,
      date: () => (side === "output" ? dateTime() : unsaid(noDateArrives)),
      unit: ({ unit }: Said & { readonly unit: unknown }) =>
        unit === undefined
          ? { not: {} }
          : unsaid("a unit is a value that JSON does not have; use another"),
      // What narrows may stay unsaid: the rest is true.
      predicate: ({ base }: Said) => base,
      patternIntersection: ({ base }: Said) => base,
      default: ({ code }: Said) => unsaid(`ArkType's ${code} has no JSON Schema; use another type`),
    };
    return type.toJsonSchema({ target: "draft-2020-12", dialect: null, fallback });
  };
  const kept = ({ base }: Said) => base;
  const all = schema.select("pattern");
  const flagged = all
    .filter(({ inner }) => /[imsv]/.test(inner.flags ?? ""))
    .map(({ inner }) => inner.rule);
  const patterns = new Map(
    all.map(
      ({ inner: { rule } }) =>
        [rule, flagged.includes(rule) ? undefined : portablePattern(rule)] as const,
    ),
  );
  if (side === "input") return withPatterns(said(schema.in, kept), patterns);
  const converted = said(schema, () => ({ [mark]: true }));
  return withPatterns(named(said(schema.out, kept), converted), patterns);
}

const mark = "x-keelson-converted";

/** What a conversion gives without saying so is `unknown`, as what is unknown by declaration: names it where one converts. */
function named(out: JsonSchema, converted: unknown): JsonSchema {
  if (Object.keys(out).length === 0 && JSON.stringify(converted)?.includes(mark) === true) {
    return unsaid("what a conversion gives is known to its code alone; put .to(type) behind it");
  }
  return mapParts(out, (part, way) => named(part, way.reduce(memberOf, converted)));
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as JsonSchema)[name] : undefined; // safe: any member of an object may be read
}

/** A pattern has no flags in a JSON Schema: without them it would forbid what the type takes. */
function withPatterns(
  schema: JsonSchema,
  patterns: ReadonlyMap<unknown, string | undefined>,
): JsonSchema {
  if (patterns.size === 0) return schema;
  const { pattern, ...rest } = mapParts(schema, (part) => withPatterns(part, patterns));
  const said = patterns.has(pattern) ? patterns.get(pattern) : pattern;
  return said === undefined ? rest : { ...rest, pattern: said };
}
