import type { JWTPayload } from "jose";
import { BootError } from "../errors/boot.ts";
import { PipelineError } from "../errors/errors.ts";
import type { Clock } from "../process/clock.ts";
import { type AuthOptions, authProblems } from "./auth-options.ts";
import {
  type GatewayClaims,
  type Identification,
  identify,
  parseGatewayRoles,
  saysWho,
} from "./claims.ts";
import { createTokenVerifier, type TokenVerifier, tokenFault } from "./token-verifier.ts";
import type { User } from "./user.ts";

/** Data in a request that identifies the caller. */
export interface Credentials {
  /** The `Authorization` header. */
  readonly authorization: string | undefined;
  /** Claims verified by an API Gateway authorizer. Set only by the Lambda host. */
  readonly gatewayClaims: GatewayClaims | undefined;
}

export interface Authenticator {
  /**
   * Identifies the caller from claims that the gateway verified, otherwise from a bearer token
   * (specification 5).
   *
   * @throws PipelineError 503 if the keys for verifying a token are unavailable.
   */
  authenticate(credentials: Credentials): Promise<Identification>;
  /**
   * Identifies the caller of a request that is rejected in any case. Uses only keys that are
   * already loaded, so it never fetches a key set. Never fails.
   */
  recognize(credentials: Credentials): Promise<User | undefined>;
}

const maxTokenLength = 8 * 1024;
const maxHeaderLength = "Bearer ".length + maxTokenLength;

/**
 * Creates the authenticator of a server. Without `auth`, only a gateway's claims identify a caller.
 * With it, they take precedence over tokens. The first token loads jose.
 *
 * @throws BootError if `auth` has problems.
 */
export function createAuthenticator(options: {
  readonly auth: AuthOptions | undefined;
  readonly clock: Clock;
}): Authenticator {
  const { auth, clock } = options;
  const problems = auth === undefined ? [] : authProblems(auth);
  if (problems.length > 0)
    throw new BootError(problems.map((problem) => ({ feature: "", ...problem })));
  let verifier: Promise<TokenVerifier> | undefined;
  const open = (given: AuthOptions): Promise<TokenVerifier> => {
    verifier ??= createTokenVerifier(given, clock).catch((error: unknown) => {
      verifier = undefined; // so that the next token retries
      throw error;
    });
    return verifier;
  };

  return Object.freeze({
    async authenticate({ authorization, gatewayClaims }: Credentials): Promise<Identification> {
      if (gatewayClaims !== undefined && saysWho(gatewayClaims.claims, auth?.claims))
        return identifyBy(gatewayClaims, auth);
      if (auth === undefined)
        return { user: undefined, problem: "authentication is not configured" };
      const token = bearerToken(authorization);
      if (typeof token !== "string") return token;
      return verified(open(auth), token, auth);
    },
    async recognize({ authorization, gatewayClaims }: Credentials): Promise<User | undefined> {
      if (gatewayClaims !== undefined && saysWho(gatewayClaims.claims, auth?.claims))
        return identifyBy(gatewayClaims, auth).user;
      // The key set is loaded only after a first token needs it.
      if (auth === undefined || (auth.secret === undefined && verifier === undefined))
        return undefined;
      const token = bearerToken(authorization);
      if (typeof token !== "string") return undefined;
      try {
        return identify(await (await open(auth)).verifyAtHand(token), auth.claims).user;
      } catch {
        return undefined; // the request fails for another reason, which the response reports
      }
    },
  });
}

function identifyBy({ by, claims }: GatewayClaims, auth: AuthOptions | undefined): Identification {
  return identify(claims, auth?.claims, (roles) => parseGatewayRoles(roles, by));
}

async function verified(
  verifier: Promise<TokenVerifier>,
  token: string,
  auth: AuthOptions,
): Promise<Identification> {
  let claims: JWTPayload;
  try {
    claims = await (await verifier).verify(token);
  } catch (error) {
    const problem = tokenFault(error);
    if (problem !== undefined) return { user: undefined, problem };
    // The token may be valid. A 401 would make clients discard it.
    throw new PipelineError("The caller's identity cannot be verified at the moment", 503, {
      cause: error,
      headers: { "retry-after": "2" },
    });
  }
  return identify(claims, auth.claims);
}

/** Reads the single token of the header, after checking the header's length. */
function bearerToken(authorization: string | undefined): string | Identification {
  if (authorization === undefined) return { user: undefined, problem: undefined };
  if (authorization.length > maxHeaderLength)
    return { user: undefined, problem: "token is longer than 8 KiB" };
  const token = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization)?.[1];
  return token ?? { user: undefined, problem: "the Authorization header is not one bearer token" };
}
