import { quoted } from "../../base/errors/quoted.ts";

/** A cookie that a reply sets. */
export interface ReplyCookie {
  readonly value: string;
  /** Default `true`. */
  readonly httpOnly?: boolean;
  /** Default `true`; in development `false`. */
  readonly secure?: boolean;
  /** Default `Lax`. */
  readonly sameSite?: "Strict" | "Lax" | "None";
  /** Default: the cookie lasts as long as the browser's session. */
  readonly maxAgeSeconds?: number;
  /** Default `/`. */
  readonly path?: string;
}

const maxCookies = 100;

/**
 * Reads a `cookie` header: prototype-free, names as they were sent, the first of a name wins, at most
 * 100; a value with malformed percent-encoding stays as it is.
 */
export function parseCookies(header: string | undefined): Record<string, string> {
  const cookies: Record<string, string> = Object.create(null);
  let count = 0;
  for (const part of (header ?? "").split(";")) {
    const mark = part.indexOf("=");
    if (mark < 1) continue;
    const name = part.slice(0, mark).trim();
    if (name === "" || name in cookies || ++count > maxCookies) continue;
    cookies[name] = decoded(
      part
        .slice(mark + 1)
        .trim()
        .replace(/^"(.*)"$/, "$1"),
    );
  }
  return cookies;
}

/** What a cookie may say of itself. */
const members: readonly string[] = [
  "value",
  "httpOnly",
  "secure",
  "sameSite",
  "maxAgeSeconds",
  "path",
] satisfies (keyof ReplyCookie)[];

/**
 * Holds a cookie against what `set-cookie` can carry, as plain JavaScript may give it. Its value may be secret, and is in no
 * message.
 *
 * @throws TypeError for a name or a path that could carry something else along, and for what is no cookie.
 */
export function assertCookie(name: string, cookie: unknown): asserts cookie is ReplyCookie {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
    throw new TypeError(`reply: cookie ${quoted(name)}: the name is no token of RFC 6265`);
  const refuse = (what: string) => new TypeError(`reply: cookie ${name}: ${what}`);
  if (typeof cookie !== "object" || cookie === null)
    throw refuse('it is no object; pass { value: "..." }');
  for (const member of Object.keys(cookie))
    if (!members.includes(member))
      throw refuse(`unknown option ${quoted(member)}; known are ${members.join(", ")}`);
  // Safe: each member is looked at below.
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
      `path ${quoted(path)} does not begin with / or has a character that a path cannot have`,
    );
  if (!["Strict", "Lax", "None"].some((known) => known === sameSite))
    throw refuse(`sameSite ${quoted(sameSite)} is none of Strict, Lax, None`);
  if (maxAgeSeconds !== undefined && !Number.isSafeInteger(maxAgeSeconds))
    throw refuse(`maxAgeSeconds ${quoted(maxAgeSeconds)} is not a whole number`);
}

/**
 * Writes a `set-cookie` value: HttpOnly, Secure outside development, SameSite=Lax and Path=/
 * unless the cookie says otherwise.
 *
 * @throws TypeError for what {@link assertCookie} refuses.
 */
export function serializeCookie(
  name: string,
  cookie: unknown,
  { development }: { readonly development: boolean },
): string {
  assertCookie(name, cookie);
  const {
    value,
    httpOnly = true,
    secure = !development,
    sameSite = "Lax",
    maxAgeSeconds,
    path = "/",
  } = cookie;
  return [
    `${name}=${encodeURIComponent(value.toWellFormed())}`,
    `Path=${path}`,
    ...(maxAgeSeconds === undefined ? [] : [`Max-Age=${maxAgeSeconds}`]),
    ...(httpOnly ? ["HttpOnly"] : []),
    ...(secure ? ["Secure"] : []),
    `SameSite=${sameSite}`,
  ].join("; ");
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
