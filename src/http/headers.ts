import { FrameworkError } from "../errors/errors.ts";

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

/**
 * Why a request is refused whose headers mean one thing to one reader and another to the next: with two hosts or one that
 * cannot be (RFC 9112, 3.2), or with two credentials. Both hosts join repeated headers, so that the joined value shows
 * it. A host that is missing is for who received the request to judge.
 */
export function refusalOfHeaders({ host, authorization }: Readonly<HeaderMap>): FrameworkError | undefined {
  if (host !== undefined && !isHost(host)) {
    return new FrameworkError("malformed_request", `The Host header ${JSON.stringify(host.slice(0, 100))} is not one valid host`);
  }
  if (authorization?.includes(",") === true && !isOneCredential(authorization)) {
    return new FrameworkError("malformed_request", "The Authorization header has more than one credential");
  }
  return undefined;
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
