import { addHeader, copyHeaders, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";

/** Headers or query parameters by name: one value each, or a list of values each. */
type Values = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Reads the headers of an event that may contain them twice, as single values and as lists. Names
 * become lower case, and repeated headers are joined as RFC 9110 specifies. A list that is not
 * empty overrides the single value.
 */
export function eventHeaders(single: Values, multiple: Values): HeaderMap {
  const headers = copyHeaders(single ?? {});
  if (multiple === undefined || multiple === null) return headers;
  const lists = emptyHeaders();
  for (const [name, values] of Object.entries(multiple)) {
    if (!Array.isArray(values)) continue;
    for (const value of values)
      if (typeof value === "string") addHeader(lists, name.toLowerCase(), value);
  }
  return { ...headers, ...lists };
}

/**
 * Rebuilds the query string from an event's parameters. A list that is not empty overrides the
 * single value, which is only the last of the list.
 *
 * @param encode - encodes parameters, which API Gateway decodes. A load balancer passes them on as
 * sent.
 */
export function joinQuery(
  single: Values,
  multiple: Values,
  encode: (text: string) => string,
): string {
  const lists = entriesOf(multiple);
  const listed = new Set(lists.map(([name]) => name));
  return [...lists, ...entriesOf(single).filter(([name]) => !listed.has(name))]
    .map(([name, value]) => `${encode(name.toWellFormed())}=${encode(value.toWellFormed())}`)
    .join("&");
}

function entriesOf(values: Values): (readonly [name: string, value: string])[] {
  const members = typeof values === "object" ? (values ?? {}) : {};
  return Object.entries(members).flatMap(([name, given]) =>
    [given].flat().flatMap((value) => (typeof value === "string" ? [[name, value] as const] : [])),
  );
}
