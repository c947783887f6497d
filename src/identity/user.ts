/** The caller (specification 2.6), from a verified token or claims that the gateway verified. */
export interface User {
  /** `undefined` for a caller that is not signed in. */
  readonly id: string | undefined;
  /** `undefined` for a caller that is not signed in. */
  readonly tenantId: string | undefined;
  readonly roles: readonly string[];
}

/** A caller that is signed in: what every access rule but `access.everyone` makes sure of. */
export interface AuthenticatedUser extends User {
  readonly id: string;
  readonly tenantId: string;
}

/** The caller of `access.everyone` that is not signed in: no IDs, no roles. */
export const anonymous: User = Object.freeze({ id: undefined, tenantId: undefined, roles: Object.freeze([]) });
