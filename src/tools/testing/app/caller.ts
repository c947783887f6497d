import { type Server, serverInternals } from "../../../app/server/server.ts";
import { anonymous, type User } from "../../../base/identity/access.ts";
import { type AuthOptions, signingSecret } from "../../../base/identity/auth-options.ts";
import { signToken, type TokenOptions } from "../../../base/identity/token.ts";
import { systemClock } from "../../../base/process/clock.ts";
import { defined } from "../../../base/types/defined.ts";

/** Caller that a test signs in. */
export interface Caller {
  /** ID of the user. */
  readonly id: string;
  /** Tenant of the user. */
  readonly tenantId: string;
  /** Roles of the user. Default: none. */
  readonly roles?: readonly string[];
}

export function userOf(caller: Caller | undefined): User {
  if (caller === undefined) return anonymous;
  const { id, tenantId, roles = [] } = caller;
  return { id, tenantId, roles: [...roles], kind: "user" };
}

/** Options of {@link testToken}. */
export interface TestTokenOptions {
  /** Lifetime of the token, in whole seconds. Default 86,400, a day. */
  readonly expiresInSeconds?: number;
}

/**
 * Signs a token that a server accepts, using its `auth` or `KEELSON_AUTH_SECRET`. For a test app,
 * use `app.token`.
 *
 * @throws Error if the server verifies with a key set, or no secret is known.
 * @example
 * const authorization = `Bearer ${await testToken(server, { id: "ann", tenantId: "acme" })}`;
 */
export async function testToken(
  server: Server,
  caller: Caller,
  options: TestTokenOptions = {},
): Promise<string> {
  const { auth = {} } = serverInternals(server).options;
  const isSigner = auth.jwks === undefined;
  const secret = isSigner
    ? (signingSecret(auth.secret) ?? process.env["KEELSON_AUTH_SECRET"])
    : undefined;
  if (!secret) {
    const why = isSigner
      ? "the server has no `auth.secret`"
      : "only its issuer signs for `auth.jwks`";
    throw new Error(
      `testToken: ${why}; set KEELSON_AUTH_SECRET instead, or take the token of a test app, app.token(caller)`,
    );
  }
  return signToken({ ...tokenOf(caller, { ...auth, secret }), ...options }, systemClock);
}

export function tokenOf(
  { id: userId, tenantId, roles = [] }: Caller,
  {
    secret: secrets,
    issuer,
    audience,
    claims,
  }: Pick<TokenOptions, "issuer" | "audience" | "claims"> & Required<Pick<AuthOptions, "secret">>,
): TokenOptions {
  const [first] = [audience].flat();
  const secret = signingSecret(secrets) as string; // safe cast: boot rejects an empty list
  return { secret, userId, tenantId, roles, ...defined({ issuer, audience: first, claims }) };
}
