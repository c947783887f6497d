import { canonical } from "../../app/openapi/canonical.ts";
import {
  type Difference,
  type DifferenceKind,
  differences,
  isRefusing,
} from "./schema-comparison.ts";
import type { SchemaNode } from "./shape.ts";

/** Whom a change breaks. */
export type Broken = "client" | "consumer" | "row";

/** One change of a contract. */
export interface Change {
  /** Absent where nobody is broken. */
  readonly breaks?: Broken;
  /** `POST /files body.sizeMb`. */
  readonly where: string;
  readonly rule: string;
  /** For people: what it was and what it is. */
  readonly detail?: string;
}

/** What a schema is there for, which says what of its changes breaks whom. */
export type Role = "input" | "output" | "payload" | "job" | "message";

/**
 * What has changed between two schemas. Breaks clients what an input no longer takes and an output takes on or no longer has;
 * consumers each change of an event's payload but a new optional property, and what a job or a delivery no longer takes.
 *
 * @param whereOf - names a place, by its path within the schema
 */
export function schemaChanges(
  role: Role,
  before: SchemaNode,
  after: SchemaNode,
  whereOf: (path: string) => string,
): readonly Change[] {
  const { narrowed, widened, broken, losing, isOpen } = roles[role];
  const found = [
    ...differences(before, after).map((difference) => ({
      difference,
      sense: "narrowed" as const,
      isBreaking: narrowed,
    })),
    ...differences(after, before, { isOpen }).map((difference) => ({
      difference,
      sense: "widened" as const,
      isBreaking: widened,
    })),
  ];
  const changes = found.map(({ difference, sense, isBreaking }): Change => {
    const rule = ruleOf(difference, sense);
    const isBroken = isRefusing(difference) ? isBreaking : losing && rule === "property-removed";
    const [from, to] =
      sense === "narrowed" ? [difference.from, difference.to] : [difference.to, difference.from];
    const detail =
      from === "" && to === "" ? {} : { detail: `${from || "not there"} -> ${to || "not there"}` };
    return {
      ...(isBroken ? { breaks: broken } : {}),
      where: whereOf(difference.path),
      rule: `${role}-${rule}`,
      ...detail,
    };
  });
  return unique([...changes, ...defaultChanges(role, before, after, whereOf)]);
}

interface RoleRules {
  /** Whether it breaks somebody that values of before are refused. */
  readonly narrowed: boolean;
  /** Whether it breaks somebody that there are values which before had not. */
  readonly widened: boolean;
  readonly broken: Broken;
  /** Whether it breaks somebody that a property is named no more. */
  readonly losing: boolean;
  /** Whether who reads it skips properties that he does not know. */
  readonly isOpen: boolean;
}

const roles: Readonly<Record<Role, RoleRules>> = {
  input: { narrowed: true, widened: false, broken: "client", losing: true, isOpen: false },
  output: { narrowed: false, widened: true, broken: "client", losing: true, isOpen: true },
  // Read by the new schema where it was queued or kept, by the old one in other applications and during a rollout.
  payload: { narrowed: true, widened: true, broken: "consumer", losing: true, isOpen: false },
  job: { narrowed: true, widened: false, broken: "consumer", losing: false, isOpen: false },
  message: { narrowed: true, widened: false, broken: "consumer", losing: false, isOpen: false },
};

type Sense = "narrowed" | "widened";

/** What has happened, where `narrowed` goes from before to after, and `widened` the other way. */
function ruleOf({ kind, type }: Difference, sense: Sense): string {
  const isNarrowed = sense === "narrowed";
  if (kind === "least") return `${leasts[type]}-${isNarrowed ? "raised" : "lowered"}`;
  if (kind === "most") return `${mosts[type]}-${isNarrowed ? "lowered" : "raised"}`;
  if (kind === "required" && !isNarrowed)
    return type === "named" ? "property-became-optional" : "property-removed";
  const names = kindNames[kind as keyof typeof kindNames]; // safe: the others are above
  if (typeof names === "string")
    return type === "none" ? `${names}-${isNarrowed ? "added" : "removed"}` : `${names}-changed`;
  return names[isNarrowed ? 0 : 1];
}

const leasts: Readonly<Record<string, string>> = {
  number: "minimum",
  string: "min-length",
  array: "min-items",
  object: "min-properties",
};
const mosts: Readonly<Record<string, string>> = {
  number: "maximum",
  string: "max-length",
  array: "max-items",
  object: "max-properties",
};

/** How a difference is called where it narrows and where it widens; one word stands for rules that come, go or change. */
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

/** Each place and rule once; of two the one that breaks somebody, and of a new property that it has to be there. */
function unique(changes: readonly Change[]): readonly Change[] {
  const breaking = new Set(changes.filter(({ breaks }) => breaks !== undefined).map(keyOf));
  const left = changes.filter((change) => {
    const { breaks, where, rule } = change;
    return (
      breaks !== undefined ||
      !(
        breaking.has(keyOf(change)) ||
        breaking.has(`${where} ${rule.replace("property-added", "required-added")}`)
      )
    );
  });
  return [...new Map(left.map((change) => [keyOf(change), change])).values()];
}

function keyOf({ where, rule }: Change): string {
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

/** The defaults of a schema's properties and items, by their paths; behind references and alternatives nobody looks. */
function defaultsOf(schema: unknown, path: string): readonly (readonly [string, string])[] {
  const { properties, items, default: own } = Object(schema) as Readonly<Record<string, unknown>>; // safe: any member may be read
  return [
    ...(own === undefined ? [] : [[path, canonical(own)] as const]),
    ...Object.entries(Object(properties)).flatMap(([name, part]) =>
      defaultsOf(part, path === "" ? name : `${path}.${name}`),
    ),
    ...(items === undefined ? [] : defaultsOf(items, `${path}[]`)),
  ];
}
