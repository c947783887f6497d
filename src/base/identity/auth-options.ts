import type { BootProblem } from "../errors/boot.ts";

/** Claims that become `ctx.user`. Names are not paths: `custom:tenantId` is one name. */
export interface ClaimNames {
  /** Claim of the user ID. Default `sub`. */
  readonly user?: string;
  /** Claim of the tenant ID. Default `tenantId`. */
  readonly tenant?: string;
  /** Claim of the roles. Default `roles`. */
  readonly roles?: string;
}

/** Options for verifying tokens: `jwks` or `secret` (specification 5). */
export interface AuthOptions {
  /** URL of a JSON Web Key Set: `https`, or `http` on this machine. Signatures are asymmetric. */
  readonly jwks?: string;
  /** Secret shared with the token issuer, at least 32 bytes. Signatures are HS256. */
  readonly secret?: string;
  /**
   * The only accepted `iss`. Default: not checked. In production, `jwks` requires `issuer` or
   * `audience`.
   */
  readonly issuer?: string;
  /** Accepted `aud` values; a token needs one. Default: not checked. */
  readonly audience?: string | readonly string[];
  readonly claims?: ClaimNames;
  /** Allowed clock difference for `exp` and `nbf`, in seconds, from 0 to 300. Default 0. */
  readonly clockToleranceSeconds?: number;
}

export type AuthProblem = Omit<BootProblem, "feature">;

/** RFC 7518 forbids keys shorter than the output of HS256. */
export const minSecretBytes = 32;

/** Never throws, and never repeats a secret. */
export function authProblems(options: unknown): AuthProblem[] {
  try {
    if (!isRecord(options)) {
      return [
        problem(
          "auth",
          "not-an-object",
          `auth is ${shown(options)}`,
          "pass { jwks } or { secret }",
        ),
      ];
    }
    return [
      ...unknownMembers("auth", options, [
        "jwks",
        "secret",
        "issuer",
        "audience",
        "claims",
        "clockToleranceSeconds",
      ]),
      ...sourceProblems(options),
      ...issuerProblems(options["issuer"]),
      ...audienceProblems(options["audience"]),
      ...claimProblems(options["claims"]),
      ...toleranceProblems(options["clockToleranceSeconds"]),
    ];
  } catch {
    return [
      problem(
        "auth",
        "unreadable",
        "auth cannot be read, one of its members throws",
        "pass a plain object",
      ),
    ];
  }
}

/**
 * Whether the server would accept tokens of other applications: an issuer may use one key set for
 * many applications, but shares a secret with one.
 */
export function takesForeignTokens({ jwks, issuer, audience }: AuthOptions): boolean {
  return jwks !== undefined && issuer === undefined && audience === undefined;
}

function sourceProblems({ jwks, secret }: Record<string, unknown>): AuthProblem[] {
  if ((jwks === undefined) === (secret === undefined)) {
    const message =
      jwks === undefined
        ? "neither auth.jwks nor auth.secret is set"
        : "both auth.jwks and auth.secret are set";
    return [problem("auth", "jwks-or-secret", message, "set exactly one of them")];
  }
  return jwks === undefined ? secretProblems(secret) : jwksProblems(jwks);
}

function secretProblems(secret: unknown): AuthProblem[] {
  const fix = `set a string of at least ${minSecretBytes} random bytes, for example from openssl rand -base64 32`;
  if (typeof secret !== "string")
    return [problem("auth.secret", "not-a-string", `auth.secret is a ${typeof secret}`, fix)];
  const bytes = Buffer.byteLength(secret);
  if (bytes >= minSecretBytes) return [];
  return [
    problem(
      "auth.secret",
      "secret-length",
      `auth.secret has ${bytes} bytes, below the minimum of ${minSecretBytes}`,
      fix,
    ),
  ];
}

function jwksProblems(jwks: unknown): AuthProblem[] {
  const fix = "set the https URL of the issuer's JSON Web Key Set";
  const url = typeof jwks === "string" ? URL.parse(jwks) : null;
  if (url === null) return [problem("auth.jwks", "not-a-url", `auth.jwks is ${shown(jwks)}`, fix)];
  if (url.username !== "" || url.password !== "") {
    return [
      problem(
        "auth.jwks",
        "url-credentials",
        "auth.jwks carries a user name or password",
        "remove them; key sets are public",
      ),
    ];
  }
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)))
    return [];
  return [
    problem(
      "auth.jwks",
      "not-https",
      `auth.jwks ${shown(jwks)} is not https, so its keys could be replaced on the way`,
      fix,
    ),
  ];
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

function issuerProblems(issuer: unknown): AuthProblem[] {
  if (issuer === undefined || isName(issuer)) return [];
  return [
    problem(
      "auth.issuer",
      "not-a-string",
      `auth.issuer is ${shown(issuer)}`,
      "set the exact iss of the tokens, or leave it out",
    ),
  ];
}

function audienceProblems(audience: unknown): AuthProblem[] {
  const list: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
  if (audience === undefined || (list.length > 0 && list.every(isName))) return [];
  const fix = "set a non-empty string or a non-empty list of them, or leave it out";
  return [problem("auth.audience", "not-a-string", `auth.audience is ${shown(audience)}`, fix)];
}

function claimProblems(claims: unknown): AuthProblem[] {
  if (claims === undefined) return [];
  if (!isRecord(claims)) {
    return [
      problem(
        "auth.claims",
        "not-an-object",
        `auth.claims is ${shown(claims)}`,
        "pass { user, tenant, roles }, or leave it out",
      ),
    ];
  }
  const known = ["user", "tenant", "roles"];
  const wrong = known.filter((member) => claims[member] !== undefined && !isName(claims[member]));
  return [
    ...unknownMembers("auth.claims", claims, known),
    ...wrong.map((member) => {
      const message = `auth.claims.${member} is ${shown(claims[member])}`;
      return problem(
        `auth.claims.${member}`,
        "not-a-string",
        message,
        "set the name of a claim, or leave it out",
      );
    }),
  ];
}

function toleranceProblems(seconds: unknown): AuthProblem[] {
  if (seconds === undefined || (typeof seconds === "number" && seconds >= 0 && seconds <= 300))
    return [];
  const message = `auth.clockToleranceSeconds is ${shown(seconds)}`;
  return [
    problem(
      "auth.clockToleranceSeconds",
      "out-of-bounds",
      message,
      "set a number of seconds from 0 to 300, or leave it out",
    ),
  ];
}

function unknownMembers(
  path: string,
  value: Record<string, unknown>,
  known: readonly string[],
): AuthProblem[] {
  const unknown = Object.keys(value).filter((member) => !known.includes(member));
  return unknown.map((member) => {
    const message = `${path} has no option ${shown(member)}`;
    return problem(
      `${path}.${member}`,
      "unknown-option",
      message,
      `remove it; known are ${known.join(", ")}`,
    );
  });
}

function problem(key: string, rule: string, message: string, fix: string): AuthProblem {
  return { key, rule, message, fix };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** Never receives a secret. */
function shown(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}...` : value);
  if (Array.isArray(value)) return "a list";
  return (typeof value === "object" && value !== null) || typeof value === "function"
    ? `of type ${typeof value}`
    : String(value);
}
