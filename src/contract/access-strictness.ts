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
  const least = leastRoles(was);
  return least === undefined || least.some((roles) => !allows(is, userWith(roles)));
}

/** Of so many sets of roles each is looked at. */
const mostCases = 1_000;

/**
 * The sets of roles that a signed-in caller needs at least; `undefined` where there are too many. Whoever has more roles is let
 * through as well, by every rule, so that no other caller has to be looked at.
 */
function leastRoles({ kind, names, rules }: AccessRule): readonly (readonly string[])[] | undefined {
  switch (kind) {
    case "admin":
      return [["admin"], ["systemAdmin"]];
    case "systemAdmin":
      return [["systemAdmin"]];
    case "roles":
      return names.map((name) => [name]);
    case "anyOf":
      return bounded(
        rules
          .map(leastRoles)
          .reduce((all, some) => (all === undefined || some === undefined ? undefined : [...all, ...some]), []),
      );
    case "allOf":
      return rules
        .map(leastRoles)
        .reduce(
          (all, some) =>
            all === undefined || some === undefined || all.length * some.length > mostCases
              ? undefined
              : all.flatMap((one) => some.map((other) => [...new Set([...one, ...other])])),
          [[]],
        );
    default:
      return [[]];
  }
}

function bounded<Item>(cases: readonly Item[] | undefined): readonly Item[] | undefined {
  return cases === undefined || cases.length > mostCases ? undefined : cases;
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
