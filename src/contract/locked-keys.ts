import type { Bounds, ConfigScope, ConfigType, RegisteredConfigKey } from "../config/declare/key.ts";
import { isStricter, type LockedAccess, lockedAccess } from "./access-strictness.ts";

/** A configuration key as the lock stores it: plain JSON, the same for the same declaration. */
export interface LockedKey {
  /** `files:config:max-upload-size-mb`. */
  readonly id: string;
  readonly scope: ConfigScope;
  readonly type: ConfigType;
  readonly bounds?: Bounds;
  /** Sorted. */
  readonly options?: readonly string[];
  /** Never of an encrypted key. */
  readonly default?: unknown;
  readonly computed?: true;
  readonly encrypted: boolean;
  readonly allowPerRequest: boolean;
  readonly read: LockedAccess;
  readonly write: LockedAccess;
  readonly formerly?: readonly string[];
}

/** One change of a key. */
export interface KeyChange {
  /** Whom it breaks: stored rows, or clients of the operators' API. Absent where nobody. */
  readonly breaks?: "row" | "client";
  /** The key's identifier. */
  readonly where: string;
  readonly rule: KeyRule;
}

/** What changed. */
export type KeyRule = keyof typeof breaking;

/** Whom each change breaks. */
const breaking = {
  "key-added": undefined,
  "key-removed": "row",
  "key-renamed": undefined,
  "former-key-added": undefined,
  "former-key-removed": "row",
  "type-changed": "row",
  "scope-changed": "row",
  "encryption-changed": "row",
  "bounds-narrowed": "row",
  "bounds-widened": undefined,
  "option-removed": "row",
  "option-added": undefined,
  "default-changed": undefined,
  "computed-added": undefined,
  "computed-removed": undefined,
  "per-request-allowed": undefined,
  "per-request-refused": "client",
  "read-access-stricter": "client",
  "read-access-widened": undefined,
  "write-access-stricter": "client",
  "write-access-widened": undefined,
} as const satisfies Readonly<Record<string, KeyChange["breaks"]>>;

/** A key in the form that the lock stores. */
export function lockedKey({ id, definition }: RegisteredConfigKey): LockedKey {
  const { scope, type, bounds, options, computed, encrypted, allowPerRequest, read, write, formerly } = definition;
  return {
    id,
    scope,
    type,
    ...(bounds === undefined ? {} : { bounds: { min: bounds.min, max: bounds.max } }),
    ...(options === undefined ? {} : { options: [...options].sort() }),
    ...(encrypted || definition.default === undefined ? {} : { default: definition.default }),
    ...(computed === undefined ? {} : { computed: true }),
    encrypted,
    allowPerRequest,
    read: lockedAccess(read),
    write: lockedAccess(write),
    ...(formerly === undefined ? {} : { formerly: [...formerly] }),
  };
}

/** Says what has changed between two sets of keys, in the order of their identifiers. */
export function compareKeys(before: readonly LockedKey[], after: readonly LockedKey[]): KeyChange[] {
  const had = new Map(before.map((key) => [key.id, key]));
  const has = new Map(after.map((key) => [key.id, key]));
  const successors = new Map(after.flatMap((key) => (key.formerly ?? []).map((id) => [id, key] as const)));
  const changes = [
    ...before.flatMap(({ id }) => (has.has(id) || successors.has(id) ? [] : [change(id, "key-removed")])),
    ...after.flatMap((key) => {
      const predecessor = had.get(key.id) ?? (key.formerly ?? []).flatMap((id) => had.get(id) ?? [])[0];
      if (predecessor === undefined) return [change(key.id, "key-added")];
      return rulesOf(predecessor, key).map((rule) => change(key.id, rule));
    }),
  ];
  return changes.sort((one, other) => (one.where < other.where ? -1 : Number(one.where > other.where)));
}

function change(where: string, rule: KeyRule): KeyChange {
  const breaks = breaking[rule];
  return { ...(breaks === undefined ? {} : { breaks }), where, rule };
}

function rulesOf(before: LockedKey, after: LockedKey): KeyRule[] {
  const found: [KeyRule, boolean][] = [];
  return found.flatMap(([rule, holds]) => (holds ? [rule] : []));
}

void isStricter;
