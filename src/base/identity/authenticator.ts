import type { CryptoKey, JWTPayload, JWTVerifyGetKey } from "jose";
import { BootError } from "../errors/boot.ts";
import { PipelineError } from "../errors/errors.ts";
import { type Clock, systemClock } from "../process/clock.ts";
import { type AuthOptions, authProblems } from "./auth-options.ts";
import {
  type GatewayClaims,
  type Identification,
  identify,
  parseGatewayRoles,
  saysWho,
} from "./claims.ts";
import { createRemoteKeys, type RemoteKeys } from "./remote-keys.ts";
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
  /** Default: the machine's clock. */
  readonly clock?: Clock | undefined;
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

interface TokenVerifier {
  /** Verifies a token. @throws Errors that {@link tokenFault} explains. */
  verify(token: string): Promise<JWTPayload>;
  /**
   * Verifies a token with the known keys, without a fetch. @throws Also if the token's key is not
   * among them.
   */
  verifyAtHand(token: string): Promise<JWTPayload>;
}

/** The two lists stay separate: a public key must never serve as an HMAC secret. */
const secretAlgorithms = ["HS256"];
const keySetAlgorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** Loads jose, imports the key once, and pins algorithms, `iss`, `aud` and a required `exp`. */
async function createTokenVerifier(
  auth: AuthOptions,
  clock: Clock | undefined,
): Promise<TokenVerifier> {
  const jose = await import("jose");
  const { secret, jwks, issuer, audience, clockToleranceSeconds } = auth;
  const keys =
    secret === undefined
      ? createRemoteKeys(jose, new URL(String(jwks)), clock ?? systemClock)
      : sameKey(await importSecret(secret));
  const pinned = {
    algorithms: secret === undefined ? keySetAlgorithms : secretAlgorithms,
    requiredClaims: ["exp"],
    clockTolerance: clockToleranceSeconds ?? 0,
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined
      ? {}
      : { audience: typeof audience === "string" ? audience : [...audience] }),
  };
  const verifyWith = (find: JWTVerifyGetKey) => async (token: string) => {
    const { payload } = await jose.jwtVerify(token, find, {
      ...pinned,
      currentDate: new Date(clock?.now() ?? Date.now()),
    });
    return payload;
  };
  return { verify: verifyWith(keys.find), verifyAtHand: verifyWith(keys.findAtHand) };
}

function sameKey(key: CryptoKey): RemoteKeys {
  const find = () => key;
  return { find, findAtHand: find };
}

function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey(
    "raw",
    Buffer.from(secret),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
}

/**
 * Describes the problem with a token for the client; `undefined` if the token is not the cause. An
 * unlisted error counts as the server's: a failure of the key set must not look like a bad token.
 */
function tokenFault(error: unknown): string | undefined {
  // jose's errors have `code`, and claim errors also have `claim` and `reason`. Only compared, so
  // any type is safe.
  const { code, claim, reason } = error as { code?: unknown; claim?: unknown; reason?: unknown };
  switch (code) {
    case "ERR_JWT_EXPIRED":
      return "token expired";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      return claimFault(String(claim), reason === "missing");
    case "ERR_JOSE_ALG_NOT_ALLOWED":
    case "ERR_JOSE_NOT_SUPPORTED":
      return "token algorithm not accepted";
    case "ERR_JWS_SIGNATURE_VERIFICATION_FAILED":
    case "ERR_JWKS_NO_MATCHING_KEY":
      return "token signature not accepted";
    case "ERR_JWKS_MULTIPLE_MATCHING_KEYS":
      return "token does not name its key (kid)";
    case "ERR_JWS_INVALID":
    case "ERR_JWT_INVALID":
      return "token is malformed";
    default:
      return undefined;
  }
}

function claimFault(claim: string, missing: boolean): string {
  if (missing) return `token has no ${claim} claim`;
  return claim === "nbf" ? "token not yet valid" : `token ${claim} claim not accepted`;
}
