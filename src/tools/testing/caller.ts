import { anonymous, type User } from "../../base/identity/user.ts";

/** The caller in a test. */
export interface Caller {
  readonly id: string;
  readonly tenantId: string;
  readonly roles?: readonly string[];
}

/** The user that a caller is; nobody is anonymous. */
export function userOf(caller: Caller | undefined): User {
  return caller === undefined
    ? anonymous
    : { id: caller.id, tenantId: caller.tenantId, roles: [...(caller.roles ?? [])] };
}

/** What the token says that signs a caller in where the server verifies with `auth`. */
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
