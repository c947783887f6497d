import { sortedBy } from "../../app/openapi/canonical.ts";
import { type AccessRule, access, allows, anonymous } from "../../base/identity/access.ts";

export type LockedAccess =
  | Exclude<AccessRule["kind"], "roles" | "anyOf" | "allOf">
  | { readonly roles: readonly string[] }
  | { readonly anyOf: readonly LockedAccess[] }
  | { readonly allOf: readonly LockedAccess[] };

export function lockedAccess({ kind, names, rules }: AccessRule): LockedAccess {
  if (kind === "roles") return { roles: [...new Set(names)].sort() };
  if (kind !== "anyOf" && kind !== "allOf") return kind;
  const parts = sortedBy(rules.map(lockedAccess), (part) => JSON.stringify(part));
  return kind === "anyOf" ? { anyOf: parts } : { allOf: parts };
}

/** Whether `after` may reject a caller that `before` allowed. */
export function isStricter(before: unknown, after: unknown) {
  if (JSON.stringify(before) === JSON.stringify(after)) return false;
  const [was, is] = [ruleOf(before), ruleOf(after)];
  if (was === undefined || is === undefined) return true;
  if (allows(was, anonymous) && !allows(is, anonymous)) return true;
  const callers = leastRoles(was);
  const isRefused = (roles: Roles) => !allows(is, { id: "u", tenantId: "t", roles: [...roles] });
  return callers === undefined || callers.some(isRefused);
}

type Roles = ReadonlySet<string>;

const mostSets = 2_000;

/** Minimal sets of roles; `undefined` if there are too many. */
function leastRoles({ kind, names, rules }: AccessRule): readonly Roles[] | undefined {
  switch (kind) {
    case "admin":
      return [new Set(["admin"]), new Set(["systemAdmin"])];
    case "systemAdmin":
      return [new Set(["systemAdmin"])];
    case "roles":
      return least(names.map((name) => new Set([name])));
    case "anyOf":
      return combined(rules, [], (all, some) => [...all, ...some]);
    case "allOf":
      return combined(rules, [new Set()], (all, some) =>
        all.flatMap((one) => some.map((other) => new Set([...one, ...other]))),
      );
    default:
      return [new Set()];
  }
}

function combined(
  rules: readonly AccessRule[],
  none: readonly Roles[],
  combine: (all: readonly Roles[], some: readonly Roles[]) => readonly Roles[],
): readonly Roles[] | undefined {
  let all: readonly Roles[] | undefined = none;
  for (const rule of rules) {
    const some = leastRoles(rule);
    if (all === undefined || some === undefined || all.length * some.length > mostSets)
      return undefined;
    all = least(combine(all, some));
  }
  return all;
}

/** A caller with more roles is allowed anyway. */
function least(sets: readonly Roles[]): readonly Roles[] {
  const found: Roles[] = [];
  for (const set of sets.toSorted((one, other) => one.size - other.size)) {
    if (!found.some((smaller) => [...smaller].every((role) => set.has(role)))) found.push(set);
  }
  return found;
}

function ruleOf(stored: unknown): AccessRule | undefined {
  try {
    return parsed(stored);
  } catch {
    return undefined;
  }
}

function parsed(stored: unknown): AccessRule {
  switch (stored) {
    case "everyone":
    case "authenticated":
    case "tenant":
    case "admin":
    case "systemAdmin":
      return access[stored];
  }
  const [[kind, parts] = [], ...others] = Object.entries(Object(stored));
  if (others.length > 0 || !Array.isArray(parts)) throw new TypeError("not a rule");
  if (kind === "roles") return access.roles(...parts);
  if (kind === "anyOf") return access.anyOf(...parts.map(parsed));
  if (kind === "allOf") return access.allOf(...parts.map(parsed));
  throw new TypeError("not a rule");
}
