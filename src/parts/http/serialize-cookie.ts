import { assertCookie, requiresSecure } from "./cookies.ts";

export function serializeCookie(
  name: string,
  cookie: unknown,
  { development }: { readonly development: boolean },
): string {
  assertCookie(name, cookie);
  const {
    value,
    httpOnly = true,
    sameSite = "Lax",
    secure = !development || requiresSecure(name, sameSite),
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
