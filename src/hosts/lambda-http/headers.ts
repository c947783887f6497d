import { addHeader, copyHeaders, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";
import { jsonValue } from "./json-value.ts";

/** Headers of an event or a result: one value a name, or several. */
type Single = Readonly<Record<string, unknown>> | null | undefined;
type Multiple = Readonly<Record<string, unknown>> | null | undefined;

/**
 * Reads the headers of an event that may have them twice, as single values and as lists:
 * names in lower case, repeated ones joined as RFC 9110 says. A list wins, unless it is empty.
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

/** Where a result may have headers. */
interface ResultHeaders {
  readonly headers: unknown;
  readonly multiValueHeaders: unknown;
  readonly cookies: unknown;
}

/**
 * Reads the headers of a result: names in lower case, values as text, what JSON leaves out and `null` left out. Lists win;
 * cookies, wherever they stand and however `Set-Cookie` is spelled, are all kept.
 *
 * @throws TypeError where the headers are not an object, or a value is one.
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
