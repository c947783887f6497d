import { sortedBy } from "../../app/openapi/canonical.ts";
import { defined } from "../../app/openapi/schema.ts";
import type { Bounds, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { isStricter, type LockedAccess, lockedAccess } from "./access-strictness.ts";
import type { Broken, Change } from "./schema-changes.ts";

export type LockedKey = ReturnType<typeof lockedKey>;

/** Changes by the parties that they break. All other changes are compatible. */
const breaking: Readonly<Record<string, Broken>> = {
  "key-removed": "row",
  "former-key-removed": "row",
  "type-changed": "row",
  "scope-changed": "row",
  "encryption-changed": "row",
  "bounds-narrowed": "row",
  "option-removed": "row",
  "per-request-refused": "client",
  "read-access-stricter": "client",
  "write-access-stricter": "client",
};

export function lockedKey({ id, definition }: RegisteredConfigKey) {
  const { scope, type, bounds, options, computed, encrypted, allowPerRequest } = definition;
  return defined({
    id,
    scope,
    type,
    bounds: bounds && { min: bounds.min, max: bounds.max },
    options: options?.toSorted(),
    default: encrypted ? undefined : definition.default,
    computed: computed && (true as const),
    encrypted,
    allowPerRequest,
    read: lockedAccess(definition.read),
    write: lockedAccess(definition.write),
    formerly: definition.formerly,
  });
}

export function compareKeys(before: readonly LockedKey[], after: readonly LockedKey[]): Change[] {
  const had = new Map(before.map((key) => [key.id, key]));
  const has = new Set(after.map(({ id }) => id));
  const successors = new Map(
    after.flatMap((key) => (key.formerly ?? []).map((id) => [id, key] as const)),
  );
  const changes = [
    ...before
      .filter(({ id }) => !has.has(id) && !successors.has(id))
      .map(({ id }) => change(id, "key-removed")),
    ...after.flatMap((key) => {
      const ids = [key.id, ...(key.formerly ?? [])];
      const [first, ...others] = ids.flatMap((id) => had.get(id) ?? []);
      if (first === undefined) return [change(key.id, "key-added")];
      // The key also inherits the rows of its other former keys.
      const inherited = others
        .flatMap((other) => rulesOf(other, key, successors))
        .filter((rule) => breaking[rule] === "row");
      const rules = new Set([...rulesOf(first, key, successors), ...inherited]);
      return [...rules].map((rule) => change(key.id, rule));
    }),
  ];
  return sortedBy(changes, ({ where }) => where);
}

function change(where: string, rule: string): Change {
  return { breaks: breaking[rule], where, rule };
}

type Fact = readonly [rule: string, holds: boolean];

function rulesOf(before: LockedKey, after: LockedKey, successors: ReadonlyMap<string, LockedKey>) {
  const { formerly: names = [] } = before;
  const known = [before.id, ...names];
  const isSameType = before.type === after.type;
  const isSameSecrecy = before.encrypted === after.encrypted;
  const facts: readonly Fact[] = [
    ["key-renamed", before.id !== after.id],
    ["former-key-added", (after.formerly ?? []).some((id) => !known.includes(id))],
    ["former-key-removed", names.some((id) => id !== after.id && !successors.has(id))],
    ["type-changed", !isSameType],
    ["scope-changed", before.scope !== after.scope],
    ["encryption-changed", !isSameSecrecy],
    ...(isSameType ? rangeFacts(before, after) : []),
    ["default-changed", isSameSecrecy && before.default !== after.default],
    ["computed-added", before.computed === undefined && after.computed !== undefined],
    ["computed-removed", before.computed !== undefined && after.computed === undefined],
    ["per-request-allowed", !before.allowPerRequest && after.allowPerRequest],
    ["per-request-refused", before.allowPerRequest && !after.allowPerRequest],
    ...accessFacts("read", before.read, after.read),
    ...accessFacts("write", before.write, after.write),
  ];
  return facts.flatMap(([rule, holds]) => (holds ? [rule] : []));
}

function rangeFacts(before: LockedKey, after: LockedKey): Fact[] {
  const [was, is] = [before.bounds ?? unbounded, after.bounds ?? unbounded];
  const isNarrowed = is.min > was.min || is.max < was.max;
  const [had, has] = [before.options ?? [], after.options ?? []];
  return [
    ["bounds-narrowed", isNarrowed],
    ["bounds-widened", !isNarrowed && (is.min < was.min || is.max > was.max)],
    ["option-removed", had.some((option) => !has.includes(option))],
    ["option-added", has.some((option) => !had.includes(option))],
  ];
}

const unbounded: Bounds = { min: -Infinity, max: Infinity };

function accessFacts(of: "read" | "write", before: LockedAccess, after: LockedAccess): Fact[] {
  const isRefused = isStricter(before, after);
  return [
    [`${of}-access-stricter`, isRefused],
    [`${of}-access-widened`, !isRefused && isStricter(after, before)],
  ];
}
