/** Headers by name, in lower case; no name is inherited. */
export type HeaderMap = Record<string, string>;

/**
 * Makes an empty map of headers. Its prototype is an empty object without one: as safe from names such as `__proto__`
 * as `Object.create(null)`, which V8 keeps as a hash table that takes twice as long to fill (`wrapped-no-log` in
 * `bench/results.json`).
 */
export function emptyHeaders(): HeaderMap {
  return new Empty();
}

/** Adds a header as it was received, its name in lower case; one that is there already is joined with it, as RFC 9110 says. */
export function addHeader(headers: HeaderMap, name: string, value: string): void {
  const present = headers[name];
  if (present === undefined) headers[name] = value;
  else headers[name] = `${present}${name === "cookie" ? "; " : ", "}${value}`;
}

// A function, since a class cannot have another prototype. Safe: what it makes has no members at all.
const Empty = function Headers() {} as unknown as new () => HeaderMap;
Empty.prototype = Object.freeze(Object.create(null));
