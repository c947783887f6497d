import { quoted } from "../../base/errors/quoted.ts";

/** Cookie that a reply sets. */
export interface ReplyCookie {
  /** Value, which is sent percent-encoded. */
  readonly value: string;
  /** Whether the cookie is hidden from scripts. Default `true`. */
  readonly httpOnly?: boolean;
  /**
   * Whether browsers send the cookie only over HTTPS. They discard a cookie without it whose name
   * starts with `__Host-` or `__Secure-`, or whose `sameSite` is `None`. Default `true`; `false` in
   * development, unless browsers would discard the cookie.
   */
  readonly secure?: boolean;
  /** `SameSite` attribute. Default `Lax`. */
  readonly sameSite?: "Strict" | "Lax" | "None";
  /** Lifetime, in seconds. Default: the browser's session. */
  readonly maxAgeSeconds?: number;
  /** `Path` attribute. Default `/`. */
  readonly path?: string;
}

const members: readonly string[] = [
  "value",
  "httpOnly",
  "secure",
  "sameSite",
  "maxAgeSeconds",
  "path",
] satisfies (keyof ReplyCookie)[];

/**
 * @throws TypeError for an invalid cookie, such as a name or path that could inject other
 * attributes. No message contains its value, which may be secret.
 */
export function assertCookie(name: string, cookie: unknown): asserts cookie is ReplyCookie {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
    throw new TypeError(`reply: cookie ${quoted(name)}: the name is not a token of RFC 6265`);
  const refuse = (what: string) => new TypeError(`reply: cookie ${name}: ${what}`);
  if (typeof cookie !== "object" || cookie === null)
    throw refuse('it is not an object; pass { value: "..." }');
  for (const member of Object.keys(cookie))
    if (!members.includes(member))
      throw refuse(`unknown option ${quoted(member)}; known are ${members.join(", ")}`);
  // The cast is safe: each member is checked below.
  const {
    value,
    httpOnly,
    secure,
    sameSite = "Lax",
    maxAgeSeconds,
    path = "/",
  } = cookie as Record<keyof ReplyCookie, unknown>;
  if (typeof value !== "string") throw refuse(`its value is of type ${typeof value}; give it text`);
  for (const [flag, given] of Object.entries({ httpOnly, secure }))
    if (given !== undefined && typeof given !== "boolean")
      throw refuse(`${flag} ${quoted(given)} is not true or false`);
  if (typeof path !== "string" || !/^\/[\x20-\x3a\x3c-\x7e]*$/.test(path))
    throw refuse(
      `path ${quoted(path)} does not start with / or has a character that a path cannot have`,
    );
  if (!["Strict", "Lax", "None"].some((known) => known === sameSite))
    throw refuse(`sameSite ${quoted(sameSite)} is not Strict, Lax or None`);
  if (maxAgeSeconds !== undefined && !Number.isSafeInteger(maxAgeSeconds))
    throw refuse(`maxAgeSeconds ${quoted(maxAgeSeconds)} is not a whole number`);
  if (secure === false && requiresSecure(name, sameSite))
    throw refuse("browsers discard it with secure: false; leave secure out");
  if (path !== "/" && /^__host-/i.test(name))
    throw refuse(`browsers discard it with path ${quoted(path)}; leave path out`);
}

/** Whether browsers discard the cookie without `Secure`, by RFC 6265bis. */
export function requiresSecure(name: string, sameSite: unknown): boolean {
  return sameSite === "None" || /^__(host|secure)-/i.test(name);
}
