import { FrameworkError } from "../../base/errors/errors.ts";

/** Headers by name, in lower case. It is asked for names of headers alone, of which no object inherits any. */
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

/**
 * Copies headers that have one value each, their names in lower case. Where they are that already, as in events of HTTP APIs
 * and load balancers, V8 copies the object as a whole, in a third of the time (`wrapped-no-log` in `bench/results.json`).
 */
export function copyHeaders(given: Readonly<Record<string, unknown>>): HeaderMap {
  if (isReady(given)) return { ...given } as HeaderMap; // safe: all are texts
  const headers = emptyHeaders();
  // Not by `Object.entries`: a `for` that goes by the object itself knows where each value is.
  for (const name in given) {
    const value = given[name];
    if (typeof value === "string") headers[lowerCase(name)] = value;
  }
  return headers;
}

function isReady(given: Readonly<Record<string, unknown>>): boolean {
  for (const name in given)
    if (typeof given[name] !== "string" || lowerCase(name) !== name) return false;
  return true;
}

/** Names come again and again: they are found in half the time that they take to be made anew. */
const remembered = new Map<string, string>();
const [maxRemembered, maxRememberedLength] = [200, 64];

function lowerCase(name: string): string {
  return remembered.get(name) ?? learn(name);
}

function learn(name: string): string {
  const lower = name.toLowerCase();
  if (remembered.size < maxRemembered && name.length <= maxRememberedLength)
    remembered.set(name, lower);
  return lower;
}

// A function, since a class cannot have another prototype. Safe: what it makes has no members at all.
const Empty = function Headers() {} as unknown as new () => HeaderMap;
Empty.prototype = Object.freeze(Object.create(null));

/** Says why a request is refused for its headers; `undefined` where it is not. */
export type HeaderCheck = (headers: Readonly<HeaderMap>) => FrameworkError | undefined;

/**
 * Creates the check that refuses a request whose headers mean one thing to one reader and another to the next: with two hosts or
 * one that cannot be (RFC 9112, 3.2), or with two credentials. Both hosts join repeated headers, so that the joined value shows
 * it. A host that is missing is for who received the request to judge. The last valid one is remembered: nearly all requests of
 * a server have the same.
 */
export function createHeaderCheck(): HeaderCheck {
  let valid: string | undefined;
  return ({ host, authorization }) => {
    if (host !== undefined && host !== valid) {
      if (!isHost(host)) {
        const message = `The Host header ${JSON.stringify(host.slice(0, 100))} is not one valid host`;
        return new FrameworkError("malformed_request", message);
      }
      valid = host;
    }
    if (authorization?.includes(",") === true && !isOneCredential(authorization)) {
      return new FrameworkError(
        "malformed_request",
        "The Authorization header has more than one credential",
      );
    }
    return undefined;
  };
}

// As RFC 3986 has a host and a port, without what carries a second: a comma, which no name has, and anything of a URL.
const name = /^(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})+(?::\d*)?$/i;
const usual = /^[a-z0-9.-]+$/;
const address = /^\[[\da-f.]*:[\da-f:.]*(?:%[\w.~%-]+)?\](?::\d*)?$/i;

function isHost(value: string): boolean {
  return usual.test(value) || name.test(value) || address.test(value);
}

const scheme = /^[\w!#$%&'*+.^`|~-]+ +/;
const parameter = /^[\w!#$%&'*+.^`|~-]+[ \t]*=[ \t]*(?:".*"|[^\s"]+)$/s;

/** Only parameters have commas between them: `Digest a="1", b=2`. A comma and anything else begins a second credential. */
function isOneCredential(value: string): boolean {
  return items(value.replace(scheme, "")).every((item) => item === "" || parameter.test(item));
}

/** The items of a list; a comma in quotes ends none. */
function items(list: string): string[] {
  const found: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let index = 0; index < list.length; index += 1) {
    const character = list[index];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === "\\" && isQuoted) index += 1;
    else if (character === "," && !isQuoted) {
      found.push(list.slice(start, index).trim());
      start = index + 1;
    }
  }
  return [...found, list.slice(start).trim()];
}
