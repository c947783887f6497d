import type { ClaimNames } from "./auth-options.ts";
import type { User } from "./user.ts";

/**
 * The caller, or the problem of the credentials, which may be sent to the client. The problem is
 * `undefined` for a request without credentials.
 */
export type Identification =
  | { readonly user: User }
  | { readonly user: undefined; readonly problem: string | undefined };

export const maxNameLength = 256;
const maxRoles = 100;
const maxRolesLength = 8192;
const unnamable = /[\p{Control}\p{Surrogate}\uFFFE\uFFFF]/u;

/**
 * Creates a `User` from verified claims. User and tenant are non-empty strings without control
 * characters, at most 256 characters. An invalid claim rejects the whole set (specification 5).
 * `rolesOf` parses the roles claim.
 */
export function identify(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
  rolesOf: (claim: unknown) => string[] | undefined = parseRoles,
): Identification {
  const { user, tenant, roles } = withDefaults(names);
  const [id, tenantId] = [claims[user], claims[tenant]];
  if (!Object.hasOwn(claims, user)) return refuse(`the ${user} claim is missing`);
  if (!isIdentifier(id)) return refuse(`the ${user} claim is not valid`);
  if (!Object.hasOwn(claims, tenant)) return refuse(`the ${tenant} claim is missing`);
  if (!isIdentifier(tenantId)) return refuse(`the ${tenant} claim is not valid`);
  const parsed = Object.hasOwn(claims, roles) ? rolesOf(claims[roles]) : [];
  if (parsed === undefined) return refuse(`the ${roles} claim is not valid`);
  return { user: Object.freeze({ id, tenantId, roles: Object.freeze(parsed) }) };
}

/** Whether `claims` include a user, tenant or roles, valid or not. */
export function saysWho(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
): boolean {
  return Object.values(withDefaults(names)).some((name) => Object.hasOwn(claims, name));
}

/**
 * Parses a token's roles claim: at most 100 names, or a string, which is one name, so
 * `"Read-only admin"` is not `admin`. Returns `undefined` if the claim is invalid.
 */
export function parseRoles(claim: unknown): string[] | undefined {
  const names = typeof claim === "string" ? [claim] : claim;
  if (!Array.isArray(names) || names.length > maxRoles || !names.every(isIdentifier))
    return undefined;
  return [...new Set(names)];
}

/** Claims verified by an API Gateway authorizer. */
export interface GatewayClaims {
  /** Kind of the authorizer: each kind converts lists to strings differently. */
  readonly by: "jwt" | "cognito" | "lambda";
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * Parses a roles claim from a gateway, which converts lists to strings. A string that is no list is
 * one role:
 *
 * | claim | `jwt`, of an HTTP API | `cognito`, of a REST API | `lambda` |
 * |---|---|---|---|
 * | `["admin", "user"]`, or the same as JSON text | `admin`, `user` | the same | the same |
 * | `"[admin user]"` | `admin`, `user` | refused | refused |
 * | `"admin,user"` | `admin,user` | `admin`, `user` | `admin,user` |
 * | `"Read-only admin"` | `Read-only admin` | the same | the same |
 *
 * In brackets, a role that contains a space looks like two roles; in a comma-separated list, a role
 * that contains a comma does.
 */
export function parseGatewayRoles(claim: unknown, by: GatewayClaims["by"]): string[] | undefined {
  return parseRoles(typeof claim === "string" ? splitRoles(claim, by) : claim);
}

/**
 * Whether a value is a valid ID or role. Half a surrogate pair would become U+FFFD, so that two
 * names could become equal. SQS rejects messages that contain U+FFFE or U+FFFF.
 */
export function isIdentifier(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= maxNameLength &&
    !unnamable.test(value)
  );
}

export function withDefaults({
  user = "sub",
  tenant = "tenantId",
  roles = "roles",
}: ClaimNames): Required<ClaimNames> {
  return { user, tenant, roles };
}

function refuse(problem: string): Identification {
  return { user: undefined, problem };
}

function splitRoles(text: string, by: GatewayClaims["by"]): readonly string[] | undefined {
  if (text.length > maxRolesLength) return undefined;
  if (by === "cognito") return textList(text) ?? named(text, text.split(","));
  if (!text.startsWith("[") || !text.endsWith("]")) return named(text, [text]);
  // An HTTP API sends the role "7" as `[7]`, so only lists of strings are parsed as JSON.
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

/** Returns `undefined` for a remaining bracket or quote, which means an unknown format. */
function named(text: string, names: readonly string[]): string[] | undefined {
  if (/[[\]"']/.test(text)) return undefined;
  return names.map((name) => name.trim()).filter((name) => name !== "");
}
