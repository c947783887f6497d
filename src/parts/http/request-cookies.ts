const maxCookies = 100;

/**
 * Parses at most 100 cookies into an object without a prototype. The first of a name wins. A value
 * with malformed percent-encoding stays unchanged.
 */
export function parseCookies(header: string | undefined): Record<string, string> {
  const cookies: Record<string, string> = Object.create(null);
  let count = 0;
  for (const part of (header ?? "").split(";")) {
    const mark = part.indexOf("=");
    if (mark < 1) continue;
    const name = part.slice(0, mark).trim();
    if (name === "" || name in cookies || ++count > maxCookies) continue;
    const value = part.slice(mark + 1).trim();
    cookies[name] = decoded(value.replace(/^"(.*)"$/, "$1"));
  }
  return cookies;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
