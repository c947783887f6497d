import { type AccessRule, access, allows } from "../identity/access.ts";
import { anonymous, type User } from "../identity/user.ts";

/** An access rule as the lock stores it: its kind, or what it is made of. */
export type LockedAccess =
  | "everyone"
  | "authenticated"
  | "tenant"
  | "admin"
  | "systemAdmin"
  | { readonly roles: readonly string[] }
  | { readonly anyOf: readonly LockedAccess[] }
  | { readonly allOf: readonly LockedAccess[] };

/** A rule in the form that the lock stores. Roles are sorted: their order says nothing. */
export function lockedAccess({ kind, names, rules }: AccessRule): LockedAccess {
  if (kind === "roles") return { roles: [...new Set(names)].sort() };
  if (kind === "anyOf") return { anyOf: rules.map(lockedAccess) };
  if (kind === "allOf") return { allOf: rules.map(lockedAccess) };
  return kind;
}

/**
 * Whether somebody whom `before` let through is not let through by `after`. Exact; where a rule of the lock is none that this
 * version knows, or has too many cases to look at, the answer is `true` unless both are the same.
 */
export function isStricter(before: unknown, after: unknown): boolean {
  if (JSON.stringify(before) === JSON.stringify(after)) return false;
  const [was, is] = [ruleOf(before), ruleOf(after)];
  if (was === undefined || is === undefined) return true;
  if (allows(was, anonymous) && !allows(is, anonymous)) return true;
  let cases = 0;
  for (const roles of leastRoles(was)) {
    cases += 1;
    if (cases > mostCases || !allows(is, userWith(roles))) return true;
  }
  return false;
}

/** So many sets of roles are looked at. */
const mostCases = 10_000;

/**
 * The sets of roles that a signed-in caller needs at least. Whoever has more roles is let through as well, by every rule, so that
 * no other caller has to be looked at.
 */
function* leastRoles({ kind, names, rules }: AccessRule): Generator<readonly string[]> {
  switch (kind) {
    case "admin":
      yield ["admin"];
      yield ["systemAdmin"];
      break;
    case "systemAdmin":
      yield ["systemAdmin"];
      break;
    case "roles":
      for (const name of names) yield [name];
      break;
    case "anyOf":
      for (const rule of rules) yield* leastRoles(rule);
      break;
    case "allOf":
      yield* leastRolesOfAll(rules);
      break;
    default:
      yield [];
  }
}

function* leastRolesOfAll([first, ...others]: readonly AccessRule[]): Generator<readonly string[]> {
  if (first === undefined) yield [];
  else for (const some of leastRoles(first)) for (const more of leastRolesOfAll(others)) yield [...some, ...more];
}

function userWith(roles: readonly string[]): User {
  return { id: "u", tenantId: "t", roles };
}

/** The rule that was stored; `undefined` where it is none. */
function ruleOf(stored: unknown): AccessRule | undefined {
  try {
    return parsed(stored);
  } catch {
    return undefined;
  }
}

/** @throws TypeError for what is no rule. */
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
