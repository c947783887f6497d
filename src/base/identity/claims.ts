import type { ClaimNames } from "./auth-options.ts";
import type { User } from "./user.ts";

/**
 * Who a request comes from, or why that is not known: `problem` is safe to send to the client,
 * and `undefined` where nothing was sent that could tell.
 */
export type Identification =
  | { readonly user: User }
  | { readonly user: undefined; readonly problem: string | undefined };

/** The longest user, tenant or role. */
export const maxNameLength = 256;
const maxRoles = 100;
const maxRolesLength = 8192;
const unnamable = /[\p{Control}\p{Surrogate}\uFFFE\uFFFF]/u;

/**
 * Makes a `User` of claims that somebody trusted has verified: a token's, or a gateway's. User and
 * tenant are non-empty strings without control characters, at most 256 characters; a claim of
 * another kind refuses the whole set (specification 5).
 *
 * @param rolesOf - how whoever verified the claims writes roles: {@link parseRoles} for a token's,
 * {@link parseGatewayRoles} for a gateway's.
 */
export function identify(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
  rolesOf: (claim: unknown) => string[] | undefined = parseRoles,
): Identification {
  const { user, tenant, roles } = withDefaults(names);
  if (!Object.hasOwn(claims, user)) return refuse(`the ${user} claim is missing`);
  const id = claims[user];
  if (!isIdentifier(id)) return refuse(`the ${user} claim is not valid`);
  if (!Object.hasOwn(claims, tenant)) return refuse(`the ${tenant} claim is missing`);
  const tenantId = claims[tenant];
  if (!isIdentifier(tenantId)) return refuse(`the ${tenant} claim is not valid`);
  const parsed = Object.hasOwn(claims, roles) ? rolesOf(claims[roles]) : [];
  if (parsed === undefined) return refuse(`the ${roles} claim is not valid`);
  return { user: Object.freeze({ id, tenantId, roles: Object.freeze(parsed) }) };
}

/** Tells whether `claims` say anything at all about the caller, right or wrong. */
export function saysWho(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
): boolean {
  const { user, tenant, roles } = withDefaults(names);
  return (
    Object.hasOwn(claims, user) || Object.hasOwn(claims, tenant) || Object.hasOwn(claims, roles)
  );
}

/**
 * Reads a token's roles claim as a set of whole names, at most 100; `undefined` where it is none. A list holds a name
 * each, a text is one name: `"Read-only admin"` is not `admin`.
 */
export function parseRoles(claim: unknown): string[] | undefined {
  const names = typeof claim === "string" ? [claim] : claim;
  if (!Array.isArray(names) || names.length > maxRoles || !names.every(isIdentifier))
    return undefined;
  return [...new Set(names)];
}

/** Claims that an authorizer of API Gateway has verified. */
export interface GatewayClaims {
  /** Which one: each has its own way to make a text of a list. */
  readonly by: "jwt" | "cognito" | "lambda";
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Reads a roles claim as a gateway hands it over, which makes texts of lists. Any other text is one role:
 *
 * | claim | `jwt`, of an HTTP API | `cognito`, of a REST API | `lambda` |
 * |---|---|---|---|
 * | `["admin", "user"]`, or the same as JSON text | `admin`, `user` | the same | the same |
 * | `"[admin user]"` | `admin`, `user` | refused | refused |
 * | `"admin,user"` | `admin,user` | `admin`, `user` | `admin,user` |
 * | `"Read-only admin"` | `Read-only admin` | the same | the same |
 *
 * Between brackets one role with a space in it cannot be told from two, nor between commas one with a comma.
 */
export function parseGatewayRoles(claim: unknown, by: GatewayClaims["by"]): string[] | undefined {
  return parseRoles(typeof claim === "string" ? splitRoles(claim, by) : claim);
}

/**
 * Tells whether `value` can be a user, a tenant or a role; half a surrogate pair would become U+FFFD, so two of them one name. SQS would
 * refuse events of a user with U+FFFE or U+FFFF.
 */
export function isIdentifier(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= maxNameLength &&
    !unnamable.test(value)
  );
}

/** The claim names, with the defaults for those that are not given. */
export function withDefaults(names: ClaimNames): Required<ClaimNames> {
  return {
    user: names.user ?? "sub",
    tenant: names.tenant ?? "tenantId",
    roles: names.roles ?? "roles",
  };
}

function refuse(problem: string): Identification {
  return { user: undefined, problem };
}

function splitRoles(text: string, by: GatewayClaims["by"]): readonly string[] | undefined {
  if (text.length > maxRolesLength) return undefined;
  if (by === "cognito") return textList(text) ?? named(text, text.split(","));
  if (!text.startsWith("[") || !text.endsWith("]")) return named(text, [text]);
  // `[7]` is the role "7" as an HTTP API delivers it, and JSON of something else: only texts count as JSON.
  const inside = text.slice(1, -1);
  return textList(text) ?? (by === "jwt" ? named(inside, inside.split(" ")) : undefined);
}

function textList(text: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((name) => typeof name === "string") ? list : undefined;
  } catch {
    return undefined;
  }
}

/** The names in a text; a bracket or a quote left over means that this is some other notation. */
function named(text: string, names: readonly string[]): string[] | undefined {
  if (/[[\]"']/.test(text)) return undefined;
  return names.map((name) => name.trim()).filter((name) => name !== "");
}
