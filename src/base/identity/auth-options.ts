import type { BootRule } from "../errors/boot-rule.ts";
import { isRecord, type OptionProblem } from "../errors/option-table.ts";
import type { RequestView } from "../request/request-view.ts";
import { type AccessRule, isAccessRule, needsIdentity } from "./access.ts";

/** Names of the claims for `ctx.user`. A name is not a path: `custom:tenantId` is one name. */
export interface ClaimNames {
  /** Claim with the user ID. Default `sub`. */
  readonly user?: string;
  /** Claim with the tenant ID. Default `tenantId`. */
  readonly tenant?: string;
  /** Claim with the roles. Default `roles`. */
  readonly roles?: string;
}

/**
 * Options for identifying callers (specification 5): tokens with either `jwks` or `secret`, or
 * without both as if there were no `auth`, and other schemes.
 */
export interface AuthOptions {
  /** URL of a JSON Web Key Set for asymmetric signatures: `https`, or `http` on this machine. */
  readonly jwks?: string;
  /**
   * Secret shared with the token issuer for HS256 signatures, at least 32 bytes. In a list, for
   * rotation, the first one signs, and all verify.
   */
  readonly secret?: string | readonly string[];
  /**
   * The only accepted `iss` value. Default: not checked. In production, `jwks` requires `issuer` or
   * `audience`.
   */
  readonly issuer?: string;
  /** Accepted `aud` values. A token needs one. Default: not checked. */
  readonly audience?: string | readonly string[];
  readonly claims?: ClaimNames;
  /** Allowed clock difference for `exp` and `nbf`, in seconds, from 0 to 300. Default 0. */
  readonly clockToleranceSeconds?: number;
  /**
   * API keys of tenants, sent as bearer token or as `X-API-Key`, and the routes `/api-keys` for
   * callers whom `manage` admits. See `docs/api-keys.md`. Default: none.
   */
  readonly apiKeys?:
    | boolean
    | {
        /** Access to the routes `/api-keys`. Default `access.admin`. */
        readonly manage?: AccessRule;
      };
  /**
   * Identifies the caller of a request in the application's own way, for example by a session cookie.
   * Called once per request: for every request if it is the only scheme, otherwise for requests
   * with neither a bearer token nor an API key. See `docs/callers.md`. Default: none.
   */
  readonly resolve?: ResolveCaller;
  /** Time limit of `resolve`, in milliseconds, from 1 to 60,000. Default 5,000. */
  readonly resolveTimeoutMs?: number;
}

/**
 * Returns the user of a request, `undefined` if the request has no signed-in user. The values have
 * to satisfy the rules for the claims of tokens, otherwise the response is a 401.
 * @throws a typed error, which becomes the response. Any other error, or no answer
 * within `resolveTimeoutMs`, is a 503.
 */
export type ResolveCaller = (
  request: CallerRequest,
  options: { readonly signal: AbortSignal },
) => ResolvedCaller | undefined | Promise<ResolvedCaller | undefined>;

/** Request as `auth.resolve` sees it, without its body. */
export interface CallerRequest
  extends Pick<RequestView, "method" | "path" | "headers" | "cookies" | "ip"> {}

/** Caller that `auth.resolve` returns. */
export interface ResolvedCaller {
  readonly id: string;
  readonly tenantId: string;
  readonly roles: readonly string[];
}

/** RFC 7518 forbids keys shorter than the output of HS256. */
const minSecretBytes = 32;

/** Never throws, and never repeats a secret. */
export function authProblems(options: unknown): OptionProblem[] {
  try {
    if (!isRecord(options))
      return wrong("auth", "not-an-object", options, "pass { jwks } or { secret }");
    return [
      ...unknownMembers("auth", options, ["jwks", "secret", ...Object.keys(optional)]),
      ...sourceProblems(options),
      ...Object.entries(optional).flatMap(([name, check]) => check(`auth.${name}`, options[name])),
    ];
  } catch {
    const message = "cannot be read, one of its members throws";
    return problem("auth", "unreadable", message, "pass a plain object");
  }
}

type Check = (key: string, value: unknown) => OptionProblem[];

const optional: Readonly<Record<string, Check>> = {
  issuer: check(isName, "not-a-string", "set the exact iss of the tokens, or leave it out"),
  audience: check(
    (value) => isName(value) || (Array.isArray(value) && value.length > 0 && value.every(isName)),
    "not-a-string",
    "set a non-empty string or a non-empty list of strings, or leave it out",
  ),
  claims: claimProblems,
  clockToleranceSeconds: check(
    (value) => typeof value === "number" && value >= 0 && value <= 300,
    "out-of-bounds",
    "set a number of seconds from 0 to 300, or leave it out",
  ),
  apiKeys: check(
    (value) => typeof value === "boolean" || (isRecord(value) && isManaged(value)),
    "option-type",
    "set true or { manage } with a rule of `access` that requires a caller, or leave it out",
  ),
  resolve: check(
    (value) => typeof value === "function",
    "option-type",
    "set a function (request, { signal }) => user, or leave it out",
  ),
  resolveTimeoutMs: check(
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= 60_000,
    "out-of-bounds",
    "set a whole number of milliseconds from 1 to 60,000, or leave it out",
  ),
};

function isManaged({ manage, ...others }: Readonly<Record<string, unknown>>): boolean {
  const isRule = manage === undefined || (isAccessRule(manage) && needsIdentity(manage));
  return isRule && Object.keys(others).length === 0;
}

function check(accepts: (value: unknown) => boolean, rule: BootRule, fix: string): Check {
  return (key, value) =>
    value === undefined || accepts(value) ? [] : wrong(key, rule, value, fix);
}

/** Returns the secret that signs tokens. */
export function signingSecret(secret: AuthOptions["secret"]): string | undefined {
  return typeof secret === "string" ? secret : secret?.[0];
}

/** Whether tokens for other applications are accepted: they may share a key set, not a secret. */
export function takesForeignTokens({ jwks, issuer, audience }: AuthOptions): boolean {
  return jwks !== undefined && issuer === undefined && audience === undefined;
}

/** Whether the options name a key set or a secret. */
export function namesTokens(auth: AuthOptions | undefined): boolean {
  return (auth?.jwks ?? auth?.secret) !== undefined;
}

function sourceProblems(options: Readonly<Record<string, unknown>>): OptionProblem[] {
  const { jwks, secret, apiKeys, resolve } = options;
  if ((jwks ?? secret) === undefined && (apiKeys ?? resolve) !== undefined) return [];
  if ((jwks === undefined) === (secret === undefined)) {
    const message =
      jwks === undefined
        ? "neither auth.jwks nor auth.secret is set"
        : "both auth.jwks and auth.secret are set";
    return [{ key: "auth", rule: "jwks-or-secret", message, fix: "set exactly one of them" }];
  }
  if (jwks !== undefined) return jwksProblems(jwks);
  const secrets = Array.isArray(secret) && secret.length > 0 ? secret : [secret];
  return secrets.flatMap(secretProblems);
}

function secretProblems(secret: unknown): OptionProblem[] {
  const fix = `set a string of at least ${minSecretBytes} random bytes, for example from openssl rand -base64 32`;
  if (typeof secret !== "string")
    return problem("auth.secret", "not-a-string", `is ${kindOf(secret)}`, fix);
  const bytes = Buffer.byteLength(secret);
  if (bytes >= minSecretBytes) return [];
  const message = `has ${bytes} bytes, below the minimum of ${minSecretBytes}`;
  return problem("auth.secret", "secret-length", message, fix);
}

/** Of a value that may be a secret in the wrong form, and is therefore not shown. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list within a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function jwksProblems(jwks: unknown): OptionProblem[] {
  const fix = "set the https URL of the issuer's JSON Web Key Set";
  const url = typeof jwks === "string" ? URL.parse(jwks) : null;
  if (url === null) return wrong("auth.jwks", "not-a-url", jwks, fix);
  if (url.username !== "" || url.password !== "") {
    const message = "carries a user name or password";
    return problem("auth.jwks", "url-credentials", message, "remove them; key sets are public");
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)))
    return [];
  const message = `${shown(jwks)} is not https, so its keys could be replaced on the way`;
  return problem("auth.jwks", "not-https", message, fix);
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

function claimProblems(key: string, claims: unknown): OptionProblem[] {
  if (claims === undefined) return [];
  if (!isRecord(claims))
    return wrong(key, "not-an-object", claims, "pass { user, tenant, roles }, or leave it out");
  const known = ["user", "tenant", "roles"];
  const named = check(isName, "not-a-string", "set the name of a claim, or leave it out");
  return [
    ...unknownMembers(key, claims, known),
    ...known.flatMap((member) => named(`${key}.${member}`, claims[member])),
  ];
}

function unknownMembers(
  path: string,
  value: Readonly<Record<string, unknown>>,
  known: readonly string[],
): OptionProblem[] {
  const fix = `remove it; known are ${known.join(", ")}`;
  const unknown = Object.keys(value).filter((member) => !known.includes(member));
  return unknown.map((member) => {
    const message = `${path} has no option ${shown(member)}`;
    return { key: `${path}.${member}`, rule: "unknown-option", message, fix };
  });
}

function wrong(key: string, rule: BootRule, value: unknown, fix: string): OptionProblem[] {
  return problem(key, rule, `is ${shown(value)}`, fix);
}

function problem(key: string, rule: BootRule, message: string, fix: string): OptionProblem[] {
  return [{ key, rule, message: `${key} ${message}`, fix }];
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function shown(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}...` : value);
  if (Array.isArray(value)) return "a list";
  return (typeof value === "object" && value !== null) || typeof value === "function"
    ? `of type ${typeof value}`
    : String(value);
}
