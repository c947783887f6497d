import { addHeader, copyHeaders, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";

/** Headers or query parameters of an event by name: one value each, or a list of values each. */
type Values = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Reads the headers of an event that may contain them twice, as single values and as lists. Names
 * become lower case, and repeated headers are joined as RFC 9110 specifies. A list that is not
 * empty overrides the single value.
 */
export function eventHeaders(single: Values, multiple: Values): HeaderMap {
  const headers = copyHeaders(single ?? {});
  return multiple === undefined || multiple === null
    ? headers
    : { ...headers, ...joinedLists(multiple) };
}

function joinedLists(lists: Readonly<Record<string, unknown>>): HeaderMap {
  const headers = emptyHeaders();
  for (const [name, values] of Object.entries(lists)) {
    if (!Array.isArray(values)) continue;
    for (const value of values)
      if (typeof value === "string") addHeader(headers, name.toLowerCase(), value);
  }
  return headers;
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
  const pairs: string[] = [];
  const listed = new Set<string>();
  for (const [name, values] of entriesOf(multiple)) {
    for (const value of [values].flat()) {
      if (typeof value !== "string") continue;
      listed.add(name);
      pairs.push(pair(name, value, encode));
    }
  }
  for (const [name, values] of entriesOf(single)) {
    if (listed.has(name)) continue;
    for (const value of [values].flat())
      if (typeof value === "string") pairs.push(pair(name, value, encode));
  }
  return pairs.join("&");
}

function entriesOf(values: Values): [string, unknown][] {
  return typeof values === "object" && values !== null ? Object.entries(values) : [];
}

function pair(name: string, value: string, encode: (text: string) => string): string {
  return `${encode(name.toWellFormed())}=${encode(value.toWellFormed())}`;
}
