import { anonymous, type User } from "../../base/identity/user.ts";

/** Caller that a test signs in. */
export interface Caller {
  readonly id: string;
  readonly tenantId: string;
  readonly roles?: readonly string[];
}

/** Returns the user for a caller. An undefined caller is the anonymous user. */
export function userOf(caller: Caller | undefined): User {
  return caller === undefined
    ? anonymous
    : { id: caller.id, tenantId: caller.tenantId, roles: [...(caller.roles ?? [])] };
}

/** Returns the token payload that signs a caller in to a server configured with `auth`. */
export function tokenOf(
  { id, tenantId, roles = [] }: Caller,
  { secret, issuer, audience, claims }: TokenAuth,
) {
  const firstAudience = typeof audience === "string" ? audience : audience?.[0];
  return {
    secret,
    userId: id,
    tenantId,
    roles,
    ...(issuer === undefined ? {} : { issuer }),
    ...(firstAudience === undefined ? {} : { audience: firstAudience }),
    ...(claims === undefined ? {} : { claims }),
  };
}

type TokenAuth = {
  readonly secret: string;
  readonly issuer?: string;
  readonly audience?: string | readonly string[];
  readonly claims?: { readonly user?: string; readonly tenant?: string; readonly roles?: string };
};
