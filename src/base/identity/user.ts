/** The caller (specification 2.6), from a verified token or claims that the gateway verified. */
export interface User {
  /** `undefined` for a caller that is not signed in, and for a system run. */
  readonly id: string | undefined;
  /** `undefined` for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
}

/**
 * A caller with a tenant, as required by `access.tenant`: a signed-in user, or a system run for
 * that tenant.
 */
export interface TenantUser extends User {
  readonly tenantId: string;
}

/** A signed-in caller, required by all rules except `access.everyone` and `access.tenant`. */
export interface AuthenticatedUser extends TenantUser {
  readonly id: string;
}

/** The caller that is not signed in, without IDs and roles. Only `access.everyone` admits it. */
export const anonymous: User = Object.freeze({
  id: undefined,
  tenantId: undefined,
  roles: Object.freeze([]),
});
