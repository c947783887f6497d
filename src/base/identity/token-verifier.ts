import type { CryptoKey, JWTPayload, JWTVerifyGetKey } from "jose";
import type { Clock } from "../process/clock.ts";
import type { AuthOptions } from "./auth-options.ts";
import { createRemoteKeys, type RemoteKeys } from "./remote-keys.ts";

export interface TokenVerifier {
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
export async function createTokenVerifier(auth: AuthOptions, clock: Clock): Promise<TokenVerifier> {
  const jose = await import("jose");
  const { secret, jwks, issuer, audience, clockToleranceSeconds } = auth;
  const keys =
    secret === undefined
      ? createRemoteKeys(jose, new URL(String(jwks)), clock)
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
      currentDate: new Date(clock.now()),
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
export function tokenFault(error: unknown): string | undefined {
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
