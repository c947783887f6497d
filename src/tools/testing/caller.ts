import { anonymous, type User } from "../../base/identity/access.ts";
import type { TokenOptions } from "../../base/identity/token.ts";

/** Caller that a test signs in. */
export interface Caller {
  readonly id: string;
  readonly tenantId: string;
  readonly roles?: readonly string[];
}

/** Returns the anonymous user if there is no caller. */
export function userOf(caller: Caller | undefined): User {
  if (caller === undefined) return anonymous;
  const { id, tenantId, roles = [] } = caller;
  return { id, tenantId, roles: [...roles] };
}

type TokenAuth = Pick<TokenOptions, "secret" | "issuer" | "audience" | "claims">;

/** Options for a token that a server with this `auth` accepts. */
export function tokenOf(
  { id: userId, tenantId, roles = [] }: Caller,
  { secret, issuer, audience, claims }: TokenAuth,
): TokenOptions {
  const [first] = [audience].flat();
  return {
    ...{ secret, userId, tenantId, roles },
    ...(issuer === undefined ? {} : { issuer }),
    ...(first === undefined ? {} : { audience: first }),
    ...(claims === undefined ? {} : { claims }),
  };
}
