import {
  AccessDeniedError,
  FrameworkError,
  NotFoundError,
  ValidationError,
} from "../../../base/errors/errors.ts";
import {
  access,
  allows,
  describeRule,
  isIdentifier,
  type User,
} from "../../../base/identity/access.ts";
import type { ConfigScope, RegisteredConfigKey } from "../declare/key.ts";
import { type RowLevel, type RowOwner, rowLevels } from "../read/rows.ts";

/** Rows that an operator reads or writes. */
export interface ConfigTarget {
  /** Level of the row. Default: the key's own scope. */
  readonly scope?: ConfigScope | undefined;
  /** ID of another tenant, for callers with `access.systemAdmin`. Default: the caller's tenant. */
  readonly tenantId?: string | undefined;
  /**
   * ID of another user, for callers with `access.systemAdmin`. Default: the caller; no user if
   * `tenantId` is another tenant.
   */
  readonly userId?: string | undefined;
}

export type TargetKey = Pick<RegisteredConfigKey, "id" | "definition">;

export interface AuthorizedTarget {
  readonly owner: RowOwner;
  readonly scope: ConfigScope;
  readonly isOther: boolean;
}

const breadth: Readonly<Record<ConfigScope, number>> = { user: 0, tenant: 1, system: 2 };

/**
 * @throws NotFoundError if the caller may not read the key, to hide that it exists; ValidationError
 * for a level that the key does not have; the errors of {@link authorizeTarget}.
 */
export function authorizeRead(user: User, key: TargetKey, target: ConfigTarget): AuthorizedTarget {
  assertReadable(user, key);
  return authorizeLevel(user, key, target);
}

/**
 * A write requires read access and the key's write rule; a scope broader than the key's also
 * `access.systemAdmin`.
 * @throws FrameworkError `unauthenticated` for a caller that is not signed in; AccessDeniedError if
 * the caller may not write there; the errors of {@link authorizeRead}.
 */
export function authorizeWrite(user: User, key: TargetKey, target: ConfigTarget): AuthorizedTarget {
  const { id, definition } = key;
  assertReadable(user, key);
  if (!allows(access.authenticated, user))
    throw new FrameworkError("unauthenticated", "Authentication required");
  if (!allows(definition.write, user))
    throw new AccessDeniedError(`to write ${id} takes ${describeRule(definition.write)}`);
  const authorized = authorizeLevel(user, key, target);
  if (breadth[authorized.scope] > breadth[definition.scope] && !allows(access.systemAdmin, user)) {
    throw new AccessDeniedError(
      `to write a ${definition.scope} key's ${authorized.scope} rows takes systemAdmin`,
    );
  }
  return authorized;
}

function authorizeLevel(user: User, { definition }: TargetKey, target: ConfigTarget) {
  const authorized = authorizeTarget(user, target, definition.scope);
  if (breadth[authorized.scope] >= breadth[definition.scope]) return authorized;
  const error = `a ${definition.scope} key has no ${authorized.scope} rows`;
  throw new ValidationError([{ field: "scope", error }]);
}

/**
 * @throws AccessDeniedError for another tenant or user without `access.systemAdmin`;
 * ValidationError for an invalid target.
 */
export function authorizeTarget(
  user: User,
  { scope, tenantId, userId }: ConfigTarget,
  keyScope: ConfigScope,
): AuthorizedTarget {
  const fields = Object.entries({ tenantId, userId })
    .filter(([, value]) => value !== undefined && !isIdentifier(value))
    .map(([field]) => ({ field, error: "is not an ID that a token can have" }));
  // A scope from a request body may have any type, even one that cannot become a string.
  if (scope !== undefined && (typeof scope !== "string" || !Object.hasOwn(breadth, scope))) {
    fields.push({ field: "scope", error: "must be system, tenant or user" });
  }
  if (fields.length > 0) throw new ValidationError(fields);
  const owner = {
    tenantId: tenantId ?? user.tenantId,
    userId: userId ?? (tenantId === undefined || tenantId === user.tenantId ? user.id : undefined),
  };
  const isOther = owner.tenantId !== user.tenantId || owner.userId !== user.id;
  if (isOther && !allows(access.systemAdmin, user))
    throw new AccessDeniedError("another tenant or user takes systemAdmin");
  return { owner, scope: scope ?? keyScope, isOther };
}

/** @throws ValidationError if a tenant row has no tenant, or a user row has no user. */
export function levelOf({ owner, scope }: AuthorizedTarget): RowLevel {
  const level = rowLevels("user", owner).find(({ source }) => source === `${scope}-row`);
  if (level !== undefined) return level;
  const error = `a ${scope} row belongs to a ${scope}; name one`;
  throw new ValidationError([{ field: `${scope}Id`, error }]);
}

/** Leaves out IDs narrower than `scope`, so that narrower rows do not apply. */
export function ownerAt({ owner: { tenantId, userId }, scope }: AuthorizedTarget): RowOwner {
  return {
    tenantId: scope === "system" ? undefined : tenantId,
    userId: scope === "user" ? userId : undefined,
  };
}

export function mayRead(user: User, { definition }: TargetKey): boolean {
  return allows(definition.read, user);
}

export function mayWriteSystemRow(user: User, { definition }: TargetKey): boolean {
  const isWriter = allows(access.authenticated, user) && allows(definition.write, user);
  return isWriter && (definition.scope === "system" || allows(access.systemAdmin, user));
}

function assertReadable(user: User, key: TargetKey): void {
  if (!mayRead(user, key)) throw new NotFoundError("config key", key.id);
}
