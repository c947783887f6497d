import { addHeader, copyHeaders, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";
import { jsonValue } from "./json-value.ts";

/** Headers of an event or a result, with one or several values per name. */
type Single = Readonly<Record<string, unknown>> | null | undefined;
type Multiple = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Reads the headers of an event that may contain them twice, as single values and as lists. Names
 * become lower case, and repeated headers are joined as RFC 9110 specifies. A list wins, unless it
 * is empty.
 */
export function eventHeaders(single: Single, multiple: Multiple): HeaderMap {
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

/** Members of a result that may contain headers. */
interface ResultHeaders {
  readonly headers: unknown;
  readonly multiValueHeaders: unknown;
  readonly cookies: unknown;
}

/**
 * Reads the headers of a result. Names become lower case, and values become strings; `null` and
 * values that JSON omits are left out. Lists win. All cookies are kept, regardless of their member
 * and the spelling of `Set-Cookie`.
 *
 * @throws TypeError if the headers are not an object, or a value is an object.
 */
export function resultHeaders({ headers: single, multiValueHeaders, cookies }: ResultHeaders): {
  headers: Record<string, string>;
  cookies: string[];
} {
  const headers: Record<string, string> = {};
  const set = textsOf(cookies, "cookies");
  for (const [name, value] of [
    ...entriesOf(single, "headers"),
    ...entriesOf(multiValueHeaders, "multiValueHeaders"),
  ]) {
    const lower = name.toLowerCase();
    const texts = textsOf(value, `header ${name.slice(0, 100)}`);
    if (lower === "set-cookie") set.push(...texts);
    else if (texts.length > 0) headers[lower] = texts.join(", ");
  }
  return { headers, cookies: [...new Set(set)] };
}

function entriesOf(given: unknown, member: string): [string, unknown][] {
  if (given === undefined || given === null) return [];
  if (typeof given === "object" && !Array.isArray(given)) return Object.entries(given);
  throw new TypeError(`the result's ${member} are no object; give values by name`);
}

function textsOf(value: unknown, what: string): string[] {
  return [value].flat().flatMap((one) => {
    const given = jsonValue(one);
    if (given === undefined || given === null) return [];
    if (typeof given !== "object") return [String(given)];
    throw new TypeError(`an object is among the values of the result's ${what}; give text`);
  });
}
