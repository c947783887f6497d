/** The caller (specification 2.6), from a verified token or claims verified by the gateway. */
export interface User {
  /** User ID; `undefined` for a caller that is not signed in, and in a system run. */
  readonly id: string | undefined;
  /** Tenant ID; `undefined` for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
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
});
