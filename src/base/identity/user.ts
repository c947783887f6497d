/** The caller (specification 2.6), from a verified token or claims that the gateway verified. */
export interface User {
  /** `undefined` for a caller that is not signed in. */
  readonly id: string | undefined;
  /** `undefined` for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
}

/** A caller of a tenant, which `access.tenant` requires: a signed-in user, or a run of the system for that tenant. */
export interface TenantUser extends User {
  readonly tenantId: string;
}

/** A caller that is signed in, which every access rule but `access.everyone` and `access.tenant` requires. */
export interface AuthenticatedUser extends TenantUser {
  readonly id: string;
}

/** The caller of `access.everyone` that is not signed in: no IDs, no roles. */
export const anonymous: User = Object.freeze({
  id: undefined,
  tenantId: undefined,
  roles: Object.freeze([]),
});
