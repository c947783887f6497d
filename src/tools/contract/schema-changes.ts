import { canonical } from "../../app/openapi/canonical.ts";
import type { JsonSchema } from "../../app/openapi/schema.ts";
import { differences } from "./schema-comparison.ts";
import type { SchemaNode } from "./shape.ts";
import { type Difference, type DifferenceKind, isRefusing } from "./shape-differences.ts";

export type Broken = "client" | "consumer" | "row";

export interface Change {
  /** Absent if the change is compatible. */
  readonly breaks?: Broken | undefined;
  readonly where: string;
  readonly rule: string;
  readonly detail?: string | undefined;
}

type Role = keyof typeof roles;

/**
 * Clients break if an input accepts less, or an output can return more or loses a property.
 * Consumers break on any change of an event's payload except a new optional property, and if a job
 * or a delivery accepts less.
 */
export function schemaChanges(
  role: Role,
  before: SchemaNode,
  after: SchemaNode,
  whereOf: (path: string) => string,
): readonly Change[] {
  const { narrowed, widened, broken, losing, isOpen } = roles[role];
  const changeOf =
    (isNarrowed: boolean, isBreaking: boolean) =>
    (difference: Difference): Change => {
      const { path, from, to } = difference;
      const rule = ruleOf(difference, isNarrowed);
      const isBroken = isRefusing(difference) ? isBreaking : losing && rule === "property-removed";
      const [was, is] = (isNarrowed ? [from, to] : [to, from]).map((text) => text || "not there");
      return {
        breaks: isBroken ? broken : undefined,
        where: whereOf(path),
        rule: `${role}-${rule}`,
        detail: from === "" && to === "" ? undefined : `${was} -> ${is}`,
      };
    };
  return unique([
    ...differences(before, after).map(changeOf(true, narrowed)),
    ...differences(after, before, { isOpen }).map(changeOf(false, widened)),
    ...defaultChanges(role, before, after, whereOf),
  ]);
}

export function partChanges(
  role: Role,
  before: SchemaNode,
  after: SchemaNode,
  where: string,
): readonly Change[] {
  return schemaChanges(
    role,
    before,
    after,
    (path) => `${where}${path === "" || path.startsWith("[") ? path : `.${path}`}`,
  );
}

/**
 * Whether it is breaking to reject accepted values (`narrowed`), to accept others (`widened`) and to
 * remove a property (`losing`), and whether readers ignore unknown properties (`isOpen`).
 */
const roles = {
  input: { narrowed: true, widened: false, broken: "client", losing: true, isOpen: false },
  output: { narrowed: false, widened: true, broken: "client", losing: true, isOpen: true },
  // The new schema reads kept events, and in a rolling deployment the old schema reads new events.
  payload: { narrowed: true, widened: true, broken: "consumer", losing: true, isOpen: false },
  job: { narrowed: true, widened: false, broken: "consumer", losing: false, isOpen: false },
  message: { narrowed: true, widened: false, broken: "consumer", losing: false, isOpen: false },
} as const;

function ruleOf({ kind, type }: Difference, isNarrowed: boolean) {
  if (kind === "least") return `${limits[type]?.[0]}-${isNarrowed ? "raised" : "lowered"}`;
  if (kind === "most") return `${limits[type]?.[1]}-${isNarrowed ? "lowered" : "raised"}`;
  if (kind === "required" && !isNarrowed)
    return type === "named" ? "property-became-optional" : "property-removed";
  // Safe cast: the other kinds are handled above.
  const names = kindNames[kind as keyof typeof kindNames];
  if (typeof names === "string")
    return type === "none" ? `${names}-${isNarrowed ? "added" : "removed"}` : `${names}-changed`;
  return names[isNarrowed ? 0 : 1];
}

const limits: Readonly<Record<string, readonly [least: string, most: string]>> = {
  number: ["minimum", "maximum"],
  string: ["min-length", "max-length"],
  array: ["min-items", "max-items"],
  object: ["min-properties", "max-properties"],
};

/** For narrowing and for widening. A single word is a prefix of added, removed or changed. */
const kindNames = {
  type: ["type-narrowed", "type-widened"],
  "changed-type": ["type-changed", "type-changed"],
  value: ["value-removed", "value-added"],
  values: ["enum-added", "enum-removed"],
  "multiple-of": "multiple-of",
  pattern: "pattern",
  format: "format",
  "unique-items": "unique-items",
  required: ["required-added", "required-added"],
  named: ["property-removed", "property-added"],
  unnamed: ["unnamed-refused", "unnamed-allowed"],
  "only-from": ["property-removed", "property-added"],
  "only-to": ["property-added", "property-removed"],
  names: ["property-names-narrowed", "property-names-widened"],
  "cannot-tell": ["cannot-tell", "cannot-tell"],
} as const satisfies Readonly<
  Record<Exclude<DifferenceKind, "least" | "most">, string | readonly [string, string]>
>;

/** Keeps one change per place and rule: breaking before others, `required-added` first. */
function unique(changes: readonly Change[]): readonly Change[] {
  const breaking = new Set(changes.filter(({ breaks }) => breaks !== undefined).map(keyOf));
  const left = changes.filter(
    ({ breaks, where, rule }) =>
      breaks !== undefined ||
      ![rule, rule.replace("property-added", "required-added")].some((one) =>
        breaking.has(keyOf({ where, rule: one })),
      ),
  );
  return [...new Map(left.map((change) => [keyOf(change), change])).values()];
}

function keyOf({ where, rule }: Change) {
  return `${where} ${rule}`;
}

function defaultChanges(
  role: Role,
  before: SchemaNode,
  after: SchemaNode,
  whereOf: (path: string) => string,
): readonly Change[] {
  const [was, is] = [new Map(defaultsOf(before, "")), new Map(defaultsOf(after, ""))];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((path) => was.get(path) !== is.get(path))
    .map((path) => ({
      where: whereOf(path),
      rule: `${role}-default-changed`,
      detail: `${was.get(path) ?? "none"} -> ${is.get(path) ?? "none"}`,
    }));
}

/** Does not follow references or alternatives. */
function defaultsOf(schema: unknown, path: string): readonly (readonly [string, string])[] {
  const { properties, items, default: own }: JsonSchema = Object(schema);
  return [
    ...(own === undefined ? [] : [[path, canonical(own)] as const]),
    ...Object.entries(Object(properties)).flatMap(([name, part]) =>
      defaultsOf(part, path === "" ? name : `${path}.${name}`),
    ),
    ...(items === undefined ? [] : defaultsOf(items, `${path}[]`)),
  ];
}
