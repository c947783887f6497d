/** The caller (specification 2.6), from a verified token or claims verified by the gateway. */
export interface User {
  /** User ID; `undefined` for a caller that is not signed in, and in a system run. */
  readonly id: string | undefined;
  /** Tenant ID; `undefined` for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
  /** `apiKey` for an API key of the tenant, whose ID is then `id`; otherwise `user`. */
  readonly kind: "user" | "apiKey";
}

/** Caller with a tenant, as `access.tenant` requires: a signed-in user or a system run. */
export interface TenantUser extends User {
  readonly tenantId: string;
}

/** Signed-in caller, required by all rules except `access.everyone` and `access.tenant`. */
export interface AuthenticatedUser extends TenantUser {
  readonly id: string;
}

/** The caller that is not signed in. Only `access.everyone` admits it. */
export const anonymous: User = Object.freeze({
  id: undefined,
  tenantId: undefined,
  roles: Object.freeze([]),
  kind: "user",
});

export const maxNameLength = 256;
const unnamable = /[\p{Control}\p{Surrogate}\uFFFE\uFFFF]/u;

/** Half a surrogate pair becomes U+FFFD, so names could clash. SQS rejects U+FFFE and U+FFFF. */
export function isIdentifier(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= maxNameLength &&
    !unnamable.test(value)
  );
}

const accessBrand: unique symbol = Symbol.for("keelson.access") as never;

const kinds = [
  "everyone",
  "authenticated",
  "tenant",
  "admin",
  "systemAdmin",
  "roles",
  "anyOf",
  "allOf",
] as const;

declare const callerType: unique symbol;

/**
 * Rule that determines which callers have access (specification 5): frozen plain data, created only
 * by {@link access}. `Caller` is the type of `ctx.user` after the check.
 */
export interface AccessRule<Caller extends User = User> {
  /** Mark by which every copy of the package recognizes a rule. */
  readonly [accessBrand]: true;
  readonly kind: (typeof kinds)[number];
  /** Role names of a `roles` rule; empty for every other kind. */
  readonly names: readonly string[];
  /** Parts of an `anyOf` or `allOf` rule; empty for every other kind. */
  readonly rules: readonly AccessRule[];
  readonly [callerType]?: () => Caller;
}

export type CallerOf<Rule extends AccessRule> =
  Rule extends AccessRule<infer Caller> ? Caller : User;

type AuthenticatedRule = AccessRule<AuthenticatedUser>;

type TenantRule = AccessRule<TenantUser>;

/** A caller that is signed in, or has a tenant, only if every rule requires it. */
type AnyCaller<Rules extends readonly AccessRule[]> = [Rules[number]] extends [AuthenticatedRule]
  ? AuthenticatedUser
  : [Rules[number]] extends [TenantRule]
    ? TenantUser
    : User;

/**
 * The strictest rule that is certain to be present decides: a list after other rules may be empty,
 * and a union of two rules may be either rule.
 */
type EveryCaller<Rules extends readonly AccessRule[], Known extends User = User> = [
  Rules[number],
] extends [AuthenticatedRule]
  ? AuthenticatedUser
  : Rules extends readonly [infer First, ...infer Rest extends readonly AccessRule[]]
    ? [First] extends [AuthenticatedRule]
      ? AuthenticatedUser
      : [] extends Rest
        ? Stricter<First, Known>
        : EveryCaller<Rest, Stricter<First, Known>>
    : [Rules[number]] extends [TenantRule]
      ? TenantUser
      : Known;

type Stricter<Rule, Known extends User> = [Rule] extends [TenantRule] ? TenantUser : Known;

/**
 * The access rules (specification 2.1 and 5). `authenticated` and every stricter rule require a
 * caller with user and tenant; `tenant` requires a tenant. `ctx.user` then has the matching type.
 * @example
 * const rule = access.anyOf(access.admin, access.roles("editor", "owner"));
 */
export const access = Object.freeze({
  /** Allows every caller, signed in or not. */
  everyone: rule<User>("everyone"),
  /** Allows every signed-in caller. */
  authenticated: rule<AuthenticatedUser>("authenticated"),
  /** Allows every caller with a tenant: signed-in users, and system runs for a tenant. */
  tenant: rule<TenantUser>("tenant"),
  /** Allows the roles `admin` and `systemAdmin`. */
  admin: rule<AuthenticatedUser>("admin"),
  /** Allows the role `systemAdmin`. */
  systemAdmin: rule<AuthenticatedUser>("systemAdmin"),
  /**
   * Allows a caller with at least one of the roles, compared exactly.
   * @throws TypeError without names, or if one is not a non-empty string.
   */
  roles(...names: readonly string[]): AuthenticatedRule {
    const isName = (name: unknown) => typeof name === "string" && name.trim() !== "";
    assertArguments("roles", names, isName, {
      none: "there are no roles; pass at least one, or use access.authenticated",
      wrong: "is not a role name; pass non-empty strings, not an array",
    });
    return rule("roles", names);
  },
  /**
   * Allows a caller that at least one of the rules allows.
   * @throws TypeError without rules, or if one is not an access rule.
   */
  anyOf<const Rules extends readonly AccessRule[]>(...rules: Rules): AccessRule<AnyCaller<Rules>> {
    return composed("anyOf", rules);
  },
  /**
   * Allows a caller that every rule allows.
   * @throws TypeError without rules, or if one is not an access rule.
   */
  allOf<const Rules extends readonly AccessRule[]>(
    ...rules: Rules
  ): AccessRule<EveryCaller<Rules>> {
    return composed("allOf", rules);
  },
});

export function isAccessRule(value: unknown): value is AccessRule {
  if (typeof value !== "object" || value === null) return false;
  // Safe cast: each member is checked before use.
  const candidate = value as Partial<AccessRule>;
  return candidate[accessBrand] === true && kinds.some((kind) => kind === candidate.kind);
}

/** Members of a user that rules check. */
export type NamedCaller = Omit<User, "kind">;

/** An unknown kind of rule, from another copy of the package, does not admit any caller. */
export function allows(rule: AccessRule, user: NamedCaller): boolean {
  switch (rule.kind) {
    case "everyone":
      return true;
    case "authenticated":
      return isSignedIn(user);
    case "tenant":
      return Boolean(user.tenantId);
    case "admin":
      return hasRole(user, ["admin", "systemAdmin"]);
    case "systemAdmin":
      return hasRole(user, ["systemAdmin"]);
    case "roles":
      return hasRole(user, rule.names);
    case "anyOf":
      return rule.rules.some((part) => allows(part, user));
    case "allOf":
      // A rule with an empty list must not admit everyone.
      return rule.rules.length > 0 && rule.rules.every((part) => allows(part, user));
    default:
      return false;
  }
}

export function describeRule(rule: AccessRule): string {
  if (rule.kind === "roles") return `roles(${rule.names.join(", ")})`;
  if (rule.kind === "anyOf" || rule.kind === "allOf")
    return `${rule.kind}(${rule.rules.map(describeRule).join(", ")})`;
  return rule.kind;
}

export function needsIdentity(rule: AccessRule): boolean {
  return !allows(rule, anonymous);
}

function rule<Caller extends User>(
  kind: AccessRule["kind"],
  names: readonly string[] = [],
  rules: readonly AccessRule[] = [],
): AccessRule<Caller> {
  return Object.freeze({
    [accessBrand]: true as const,
    kind,
    names: Object.freeze([...names]),
    rules: Object.freeze([...rules]),
  });
}

function composed<Caller extends User>(
  kind: "anyOf" | "allOf",
  rules: readonly AccessRule[],
): AccessRule<Caller> {
  assertArguments(kind, rules, isAccessRule, {
    none: "no rule is given; pass at least one, or access.everyone to allow every caller",
    wrong:
      'is not an access rule; pass access.admin, access.roles("editor") and the like, not an array',
  });
  return rule(kind, [], rules);
}

function assertArguments(
  factory: string,
  given: readonly unknown[],
  isSound: (argument: unknown) => boolean,
  messages: { readonly none: string; readonly wrong: string },
): void {
  if (given.length === 0) throw new TypeError(`access.${factory}(): ${messages.none}`);
  const index = given.findIndex((argument) => !isSound(argument));
  if (index !== -1)
    throw new TypeError(`access.${factory}(): argument ${index + 1} ${messages.wrong}`);
}

function isSignedIn(user: NamedCaller): boolean {
  return Boolean(user.id) && Boolean(user.tenantId);
}

function hasRole(user: NamedCaller, names: readonly string[]): boolean {
  return isSignedIn(user) && names.some((name) => user.roles.includes(name));
}
