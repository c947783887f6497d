import type { ReplyCookie } from "./reply.ts";

const maxCookies = 100;

/**
 * Reads a `cookie` header: prototype-free, names in lower case, the first of a name wins, at most
 * 100; a value with malformed percent-encoding stays as it is.
 */
export function parseCookies(header: string | undefined): Record<string, string> {
  const cookies: Record<string, string> = Object.create(null);
  let count = 0;
  for (const part of (header ?? "").split(";")) {
    const mark = part.indexOf("=");
    if (mark < 1) continue;
    const name = part.slice(0, mark).trim().toLowerCase();
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

/**
 * Writes a `set-cookie` value: HttpOnly, Secure outside development, SameSite=Lax and Path=/
 * unless the cookie says otherwise.
 *
 * @throws TypeError for a name or a path that could carry something else along.
 */
export function serializeCookie(name: string, cookie: ReplyCookie, { development }: { readonly development: boolean }): string {
  const { value, httpOnly = true, secure = !development, sameSite = "Lax", maxAgeSeconds, path = "/" } = cookie;
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
    throw new TypeError(`cookie ${JSON.stringify(name)}: the name is no token of RFC 6265`);
  if (!/^\/[\x20-\x3a\x3c-\x7e]*$/.test(path))
    throw new TypeError(
      `cookie ${name}: path ${JSON.stringify(path)} does not begin with / or has a character that a path cannot have`,
    );
  if (!["Strict", "Lax", "None"].includes(sameSite))
    throw new TypeError(`cookie ${name}: sameSite ${JSON.stringify(sameSite)} is none of Strict, Lax, None`);
  if (maxAgeSeconds !== undefined && !Number.isSafeInteger(maxAgeSeconds))
    throw new TypeError(`cookie ${name}: maxAgeSeconds ${maxAgeSeconds} is not a whole number`);
  return [
    `${name}=${encodeURIComponent(String(value).toWellFormed())}`,
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
