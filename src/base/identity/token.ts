import type { Clock } from "../process/clock.ts";
import { authProblems, type ClaimNames } from "./auth-options.ts";
import { identify, withDefaults } from "./authenticator.ts";

export interface TokenOptions {
  /** Secret of the server's `auth`, at least 32 bytes. */
  readonly secret: string;
  readonly userId: string;
  readonly tenantId: string;
  readonly roles: readonly string[];
  /** Lifetime in whole seconds, at most ten years. Default 86,400. */
  readonly expiresInSeconds?: number;
  readonly issuer?: string;
  readonly audience?: string | readonly string[];
  readonly claims?: ClaimNames;
}

const maxExpirySeconds = 10 * 365 * 86_400;

/**
 * Signs a token with HS256, for development, tests and scripts (specification 5).
 * @throws TypeError if the server would reject the token.
 */
export async function signToken(options: TokenOptions, clock: Clock): Promise<string> {
  const { secret, userId, tenantId, roles, expiresInSeconds = 86_400 } = options;
  const { issuer, audience, claims = {} } = options;
  const names = withDefaults(claims);
  const payload = { [names.roles]: [...roles], [names.tenant]: tenantId, [names.user]: userId };
  check(options, payload, expiresInSeconds);
  const { SignJWT } = await import("jose");
  const issuedAt = Math.floor(clock.now() / 1000);
  const token = new SignJWT(payload)
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + expiresInSeconds);
  if (issuer !== undefined) token.setIssuer(issuer);
  if (audience !== undefined)
    token.setAudience(typeof audience === "string" ? audience : [...audience]);
  return token.sign(Buffer.from(secret));
}

function check(options: TokenOptions, payload: Record<string, unknown>, seconds: number): void {
  const { secret, userId, tenantId, roles, issuer, audience, claims } = options;
  const wrong = authProblems({ secret, issuer, audience, claims })[0];
  if (wrong !== undefined) refuse(`${wrong.message}; ${wrong.fix}`);
  const identification = identify(payload, claims);
  if (identification.user === undefined) {
    const rule =
      "user, tenant and roles are non-empty strings of at most 256 characters, without control characters";
    refuse(`${identification.problem}; ${rule}`);
  }
  const asked = { id: userId, tenantId, roles: [...new Set(roles)], kind: "user" };
  if (JSON.stringify(identification.user) !== JSON.stringify(asked)) {
    refuse(
      "two of claims.user, claims.tenant and claims.roles are the same name; name a claim for each",
    );
  }
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > maxExpirySeconds)
    refuse(`expiresInSeconds ${seconds} is not a whole number from 1 to ${maxExpirySeconds}`);
}

function refuse(problem: string): never {
  throw new TypeError(`signToken: ${problem}`);
}
