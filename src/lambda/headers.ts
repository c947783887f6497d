import { emptyHeaders } from "../http/header-map.ts";

/** Headers of an event or a result: one value a name, or several. */
type Single = Readonly<Record<string, unknown>> | null | undefined;
type Multiple = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Reads the headers of an event that may have them twice, as single values and as lists:
 * prototype-free, names in lower case, repeated ones joined as RFC 9110 says. Lists win.
 */
export function eventHeaders(single: Single, multiple: Multiple): Record<string, string> {
  const headers = emptyHeaders();
  for (const [name, value] of Object.entries(single ?? {})) {
    if (typeof value === "string") headers[name.toLowerCase()] = value;
  }
  for (const [name, values] of Object.entries(multiple ?? {})) {
    if (!Array.isArray(values)) continue;
    const lower = name.toLowerCase();
    headers[lower] = values.filter((value) => typeof value === "string").join(lower === "cookie" ? "; " : ", ");
  }
  return headers;
}

/** Reads the headers of a result: names in lower case, values as text, cookies apart. Lists win. */
export function textHeaders(single: Single, multiple: Multiple): { headers: Record<string, string>; cookies: string[] } {
  const headers: Record<string, string> = {};
  const cookies: string[] = [];
  for (const [name, value] of Object.entries(single ?? {})) headers[name.toLowerCase()] = String(value);
  for (const [name, values] of Object.entries(multiple ?? {})) {
    const lower = name.toLowerCase();
    const texts = [values].flat().map(String);
    if (lower === "set-cookie") cookies.push(...texts);
    else headers[lower] = texts.join(", ");
  }
  const { "set-cookie": cookie, ...rest } = headers;
  return cookie === undefined ? { headers, cookies } : { headers: rest, cookies: [cookie, ...cookies] };
}
