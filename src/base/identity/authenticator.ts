import type { JWTPayload } from "jose";
import { BootError } from "../errors/boot.ts";
import { PipelineError, systemCode } from "../errors/errors.ts";
import { type Clock, systemClock } from "../process/clock.ts";
import { defined } from "../types/defined.ts";
import { isIdentifier, type User } from "./access.ts";
import { type AuthOptions, authProblems, type ClaimNames, namesTokens } from "./auth-options.ts";
import { createRemoteKeys, type RemoteKeys } from "./remote-keys.ts";

export interface Credentials {
  readonly authorization: string | undefined;
  /** Set only by the Lambda host. */
  readonly gatewayClaims: GatewayClaims | undefined;
  /** Request with the credentials, for schemes that read other headers. */
  readonly request?: SentRequest;
  /** Full name of the handler that is called. */
  readonly handler?: string | undefined;
}

interface SentRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly path?: string;
  readonly ip?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Authenticator {
  /** Identifies the caller (specification 5). @throws PipelineError 503 if that is not possible. */
  authenticate(credentials: Credentials): Promise<Identification>;
  /** Identifies the caller of a request that is rejected anyway. Never fails, reads or fetches. */
  recognize(credentials: Credentials): Promise<User | undefined>;
  /** Whether it looks into every request, with credentials or without. */
  readonly readsAll?: boolean;
}

const maxHeaderLength = "Bearer ".length + 8 * 1024;

/**
 * A gateway's claims identify a caller; with `auth`, so do tokens, but a gateway's claims take
 * precedence. The first token loads jose.
 * @throws BootError if `auth` has problems.
 */
export function createAuthenticator(options: {
  readonly auth: AuthOptions | undefined;
  readonly clock?: Clock | undefined;
}): Authenticator {
  const { auth, clock } = options;
  const problems = auth === undefined ? [] : authProblems(auth);
  if (problems.length > 0)
    throw new BootError(problems.map((problem) => ({ feature: "", ...problem })));
  const tokens = namesTokens(auth) ? auth : undefined;
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
      const known = identifyBy(gatewayClaims, auth);
      if (known !== undefined) return known;
      if (tokens === undefined) return refuse("authentication is not configured");
      const token = bearerToken(authorization);
      if (typeof token !== "string") return token;
      return verified(open(tokens), token, tokens);
    },
    async recognize({ authorization, gatewayClaims }: Credentials): Promise<User | undefined> {
      const known = identifyBy(gatewayClaims, auth);
      if (known !== undefined) return known.user;
      // Without a verifier, no token has needed the key set yet, so no key is known.
      if (tokens === undefined || (tokens.secret === undefined && verifier === undefined))
        return undefined;
      const token = bearerToken(authorization);
      if (typeof token !== "string") return undefined;
      try {
        return identify(await (await open(tokens)).verifyAtHand(token), tokens.claims).user;
      } catch {
        return undefined;
      }
    },
  });
}

function identifyBy(
  given: GatewayClaims | undefined,
  auth: AuthOptions | undefined,
): Identification | undefined {
  if (given === undefined || !saysWho(given.claims, auth?.claims)) return undefined;
  return identify(given.claims, auth?.claims, (roles) => parseGatewayRoles(roles, given.by));
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
    if (problem !== undefined) return refuse(problem);
    // The token may be valid, and a 401 would make clients discard it.
    throw new PipelineError("The caller's identity cannot be verified at the moment", 503, {
      cause: error,
      headers: { "retry-after": "2" },
    });
  }
  return identify(claims, auth.claims);
}

function bearerToken(authorization: string | undefined): string | Identification {
  if (authorization === undefined) return refuse(undefined);
  if (authorization.length > maxHeaderLength) return refuse("token is longer than 8 KiB");
  const token = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i.exec(authorization)?.[1];
  return token ?? refuse("the Authorization header is not one bearer token");
}

/** The caller, or a problem for the client: `undefined` for a request without credentials. */
export type Identification =
  | { readonly user: User }
  | { readonly user: undefined; readonly problem: string | undefined };

/** An invalid claim rejects the whole set (specification 5). */
export function identify(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
  rolesOf: (claim: unknown) => string[] | undefined = parseRoles,
): Identification {
  const { user, tenant, roles } = withDefaults(names);
  const [id, tenantId] = [claims[user], claims[tenant]];
  if (!Object.hasOwn(claims, user)) return refuse(`the ${user} claim is missing`);
  if (!isIdentifier(id)) return refuse(`the ${user} claim is not valid`);
  if (!Object.hasOwn(claims, tenant)) return refuse(`the ${tenant} claim is missing`);
  if (!isIdentifier(tenantId)) return refuse(`the ${tenant} claim is not valid`);
  const parsed = Object.hasOwn(claims, roles) ? rolesOf(claims[roles]) : [];
  if (parsed === undefined) return refuse(`the ${roles} claim is not valid`);
  return { user: Object.freeze({ id, tenantId, roles: Object.freeze(parsed), kind: "user" }) };
}

/** Whether the claims have a user, a tenant or roles, valid or not. */
export function saysWho(
  claims: Readonly<Record<string, unknown>>,
  names: ClaimNames = {},
): boolean {
  return Object.values(withDefaults(names)).some((name) => Object.hasOwn(claims, name));
}

/** Parses at most 100 names, or a string, which is one name: `"Read-only admin"` is not `admin`. */
export function parseRoles(claim: unknown): string[] | undefined {
  const names = typeof claim === "string" ? [claim] : claim;
  if (!Array.isArray(names) || names.length > 100 || !names.every(isIdentifier)) return undefined;
  return [...new Set(names)];
}

/** Claims that an API Gateway authorizer verified. */
export interface GatewayClaims {
  /** Kind of the authorizer, which determines the format of lists. */
  readonly by: "jwt" | "cognito" | "lambda";
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * A gateway converts lists to strings. A string that is not a list is one role:
 *
 * | claim | `jwt`, of an HTTP API | `cognito`, of a REST API | `lambda` |
 * |---|---|---|---|
 * | `["admin", "user"]`, or the same as JSON text | `admin`, `user` | the same | the same |
 * | `"[admin user]"` | `admin`, `user` | refused | refused |
 * | `"admin,user"` | `admin,user` | `admin`, `user` | `admin,user` |
 * | `"Read-only admin"` | `Read-only admin` | the same | the same |
 *
 * A role that contains a space in brackets, or a comma in a list, looks like two roles.
 */
export function parseGatewayRoles(claim: unknown, by: GatewayClaims["by"]): string[] | undefined {
  return parseRoles(typeof claim === "string" ? splitRoles(claim, by) : claim);
}

export function withDefaults({
  user = "sub",
  tenant = "tenantId",
  roles = "roles",
}: ClaimNames): Required<ClaimNames> {
  return { user, tenant, roles };
}

function refuse(problem: string | undefined): Identification {
  return { user: undefined, problem };
}

function splitRoles(text: string, by: GatewayClaims["by"]): readonly string[] | undefined {
  if (text.length > 8192) return undefined;
  if (by === "cognito") return textList(text) ?? named(text, text.split(","));
  if (!text.startsWith("[") || !text.endsWith("]")) return named(text, [text]);
  // An HTTP API sends the role "7" as `[7]`, so only lists of strings are parsed as JSON.
  const inside = text.slice(1, -1);
  return textList(text) ?? (by === "jwt" ? named(inside, inside.split(" ")) : undefined);
}

function textList(text: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((name) => typeof name === "string") ? list : undefined;
  } catch {
    return undefined;
  }
}

/** A remaining bracket or quote means an unknown format. */
function named(text: string, names: readonly string[]): string[] | undefined {
  if (/[[\]"']/.test(text)) return undefined;
  return names.map((name) => name.trim()).filter((name) => name !== "");
}

type TokenVerifier = Awaited<ReturnType<typeof createTokenVerifier>>;

/** The two lists stay separate: a public key must never serve as an HMAC secret. */
const secretAlgorithms = ["HS256"];
const keySetAlgorithms = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

async function createTokenVerifier(auth: AuthOptions, clock: Clock | undefined) {
  const jose = await import("jose");
  const { secret, jwks, issuer, audience, clockToleranceSeconds } = auth;
  const keys =
    secret === undefined
      ? [createRemoteKeys(jose, new URL(String(jwks)), clock ?? systemClock)]
      : await Promise.all([secret].flat().map(secretKeys));
  const pinned = {
    algorithms: secret === undefined ? keySetAlgorithms : secretAlgorithms,
    requiredClaims: ["exp"],
    clockTolerance: clockToleranceSeconds ?? 0,
    ...defined({ issuer, audience: audience && [audience].flat() }),
  };
  const verify = async (way: keyof RemoteKeys, token: string, index = 0): Promise<JWTPayload> => {
    const { [way]: find } = keys[index] as RemoteKeys; // safe cast: there is at least one
    const currentDate = new Date(clock?.now() ?? Date.now());
    try {
      return (await jose.jwtVerify(token, find, { ...pinned, currentDate })).payload;
    } catch (error) {
      // The token may have the signature of another secret.
      if (index + 1 === keys.length || systemCode(error) !== wrongSignature) throw error;
      return verify(way, token, index + 1);
    }
  };
  return {
    /** @throws errors that {@link tokenFault} explains. */
    verify: (token: string) => verify("find", token),
    /** Never fetches keys. Throws for an unknown key. */
    verifyAtHand: (token: string) => verify("findAtHand", token),
  };
}

async function secretKeys(secret: string): Promise<RemoteKeys> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = Buffer.from(secret);
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  const find = () => key;
  return { find, findAtHand: find };
}

/** Returns `undefined` for a fault of the server, which must not look like a bad token. */
function tokenFault(error: unknown): string | undefined {
  // Safe cast: the members of jose's errors are only compared.
  const { code, claim, reason } = error as { code?: unknown; claim?: unknown; reason?: unknown };
  return code === "ERR_JWT_CLAIM_VALIDATION_FAILED"
    ? claimFault(String(claim), reason === "missing")
    : faults.get(code);
}

const wrongSignature = "ERR_JWS_SIGNATURE_VERIFICATION_FAILED";
const faults: ReadonlyMap<unknown, string> = new Map([
  ["ERR_JWT_EXPIRED", "token expired"],
  ["ERR_JOSE_ALG_NOT_ALLOWED", "token algorithm not accepted"],
  ["ERR_JOSE_NOT_SUPPORTED", "token algorithm not accepted"],
  [wrongSignature, "token signature not accepted"],
  ["ERR_JWKS_NO_MATCHING_KEY", "token signature not accepted"],
  ["ERR_JWKS_MULTIPLE_MATCHING_KEYS", "token does not name its key (kid)"],
  ["ERR_JWS_INVALID", "token is malformed"],
  ["ERR_JWT_INVALID", "token is malformed"],
]);

function claimFault(claim: string, missing: boolean): string {
  if (missing) return `token has no ${claim} claim`;
  return claim === "nbf" ? "token not yet valid" : `token ${claim} claim not accepted`;
}
