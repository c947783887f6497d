import { FrameworkError } from "../../base/errors/errors.ts";

/** Values by lower-case name. Only header names are looked up, so any prototype is harmless. */
export type HeaderMap = Record<string, string>;

/**
 * The prototype is an empty object without one, so the map is as safe from `__proto__` as
 * `Object.create(null)`, which V8 would store as a hash table that takes twice as long to fill
 * (`wrapped-no-log` in `bench/results.json`).
 */
export function emptyHeaders(): HeaderMap {
  return new Empty();
}

/** Joins repeated headers as RFC 9110 specifies. `name` is in lower case. */
export function addHeader(headers: HeaderMap, name: string, value: string): void {
  const present = headers[name];
  if (present === undefined) headers[name] = value;
  else headers[name] = `${present}${name === "cookie" ? "; " : ", "}${value}`;
}

/**
 * Converts names to lower case. If all are, as in events of HTTP APIs and load balancers, V8 copies
 * the whole object in a third of the time (`wrapped-no-log` in `bench/results.json`).
 */
export function copyHeaders(given: Readonly<Record<string, unknown>>): HeaderMap {
  if (isReady(given)) return { ...given } as HeaderMap; // safe: `isReady` has checked that all values are strings
  const headers = emptyHeaders();
  // `for...in` is faster than `Object.entries`, because V8 knows the position of each value.
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

/**
 * Frequent names, in both spellings that clients, API Gateway, CloudFront and load balancers use. A
 * lookup takes half the time of a conversion.
 */
const known = new Map(
  `Accept Accept-Encoding Accept-Language Authorization Cache-Control CloudFront-Forwarded-Proto
  CloudFront-Is-Desktop-Viewer CloudFront-Is-Mobile-Viewer CloudFront-Is-SmartTV-Viewer
  CloudFront-Is-Tablet-Viewer CloudFront-Viewer-ASN CloudFront-Viewer-Country Connection
  Content-Length Content-Type Cookie Host Idempotency-Key If-Match If-None-Match Origin Pragma
  Priority Referer Sec-Ch-Ua Sec-Ch-Ua-Mobile Sec-Ch-Ua-Platform Sec-Fetch-Dest Sec-Fetch-Mode
  Sec-Fetch-Site Sec-Fetch-User Traceparent Tracestate Upgrade-Insecure-Requests User-Agent Via
  X-Amz-Cf-Id X-Amzn-Trace-Id X-Forwarded-For X-Forwarded-Host X-Forwarded-Port X-Forwarded-Proto
  X-Request-Id`
    .split(/\s+/)
    .flatMap((name) => [name, name.toLowerCase()])
    .map((name) => [name, name.toLowerCase()]),
);

function lowerCase(name: string): string {
  return known.get(name) ?? name.toLowerCase();
}

// A function, because the prototype of a class cannot be replaced. Safe: it creates no members.
const Empty = function Headers() {} as unknown as new () => HeaderMap;
Empty.prototype = Object.freeze(Object.create(null));

export type HeaderCheck = (headers: Readonly<HeaderMap>) => FrameworkError | undefined;

/**
 * Returns the error for ambiguous headers: several hosts, an invalid one (RFC 9112, 3.2) or several
 * credentials. Repeated headers arrive joined. A missing `host` is left to the receiver. Remembers
 * the last valid host, because nearly all requests have the same.
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

// Host and port of RFC 3986, without comma and URL delimiters, which could start a second host.
const name = /^(?:[\w.~!$&'()*+;=-]|%[\da-f]{2})+(?::\d*)?$/i;
const usual = /^[a-z0-9.-]+$/;
const address = /^\[[\da-f.]*:[\da-f:.]*(?:%[\w.~%-]+)?\](?::\d*)?$/i;

function isHost(value: string): boolean {
  return usual.test(value) || name.test(value) || address.test(value);
}

const scheme = /^[\w!#$%&'*+.^`|~-]+ +/;
const parameter = /^[\w!#$%&'*+.^`|~-]+[ \t]*=[ \t]*(?:".*"|[^\s"]+)$/s;

/** After a comma, anything but a parameter (`Digest a="1", b=2`) starts a second credential. */
function isOneCredential(value: string): boolean {
  return items(value.replace(scheme, "")).every((item) => item === "" || parameter.test(item));
}

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
