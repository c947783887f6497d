import type { LookupAddress } from "node:dns";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { Socket, TcpNetConnectOpts } from "node:net";
import type ipaddr from "ipaddr.js";
import { systemCode } from "../../base/errors/errors.ts";
import { signWebhook } from "../../parts/webhooks/standard-webhooks.ts";
import type { NameLookup } from "./name-lookup.ts";

const maxUrlLength = 2_048;
const maxPlaceLength = 200;
/** Limits of the name lookup: in milliseconds, and as a share of the timeout. */
const [maxLookupMs, maxLookupShare] = [5_000, 0.5];
// Frame the request or are signed, so callers cannot set them.
const reservedHeader =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|expect|upgrade|webhook-.*)$/i;

export interface WebhookRequest {
  /** https, at most 2,048 characters, without credentials. */
  readonly url: string;
  readonly id: string;
  /** Body, sent unchanged, as `application/json` unless `headers` says otherwise. */
  readonly body: string;
  readonly secret: string | undefined;
  readonly nowMs: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly allowHttp: boolean;
  /** For development. */
  readonly allowPrivate: boolean;
  /** From the start of the name lookup to the end of the response headers. */
  readonly timeoutMs: number;
  /** May take half of `timeoutMs`, and at most 5 s. */
  readonly lookup: NameLookup;
  /** Runs `send` in a span, and may pass the span's `traceparent` to `send`. */
  readonly around?: (
    url: URL,
    send: (traceparent: string | undefined) => Promise<number>,
  ) => Promise<number>;
}

/** The message contains neither the secret nor the URL's query. */
export class WebhookError extends Error {
  /** Whether a retry may succeed: after a timeout, a failed connection, 429 or 5xx. */
  readonly isRetryable: boolean;
  constructor(message: string, isRetryable: boolean, cause?: unknown) {
    super(message, { cause });
    this.name = "WebhookError";
    this.isRetryable = isRetryable;
  }
}

/**
 * A URL from an untrusted party cannot reach internal targets: keelson follows no redirects, uses
 * no proxy, and opens a connection to an address that it checked, without a second lookup.
 *
 * | event | outcome |
 * |---|---|
 * | 2xx, even with a truncated body | resolves |
 * | no connection, timeout, 429, 5xx | retryable `WebhookError` |
 * | any other status, including redirects | permanent `WebhookError` |
 * | a refused URL, address or header | permanent `WebhookError`, no request is sent |
 */
export async function postWebhook(request: WebhookRequest): Promise<{ status: number }> {
  const url = webhookUrl(request);
  const place = placeOf(url);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), request.timeoutMs);
  try {
    const { around = (_url, post) => post(undefined) } = request;
    const status = await around(url, (traceparent) => {
      const headers = traceparent === undefined ? {} : { traceparent };
      const traced = { ...request, headers: { ...request.headers, ...headers } };
      return send({ request: traced, url, place, signal: deadline.signal });
    });
    if (status < 200 || status > 299) throw statusError(place, status);
    return { status };
  } catch (cause) {
    if (cause instanceof WebhookError) throw cause;
    const what = deadline.signal.aborted
      ? `no answer within ${request.timeoutMs} ms`
      : `connection failed (${String(systemCode(cause) ?? "no code")})`;
    throw new WebhookError(`${place}: ${what}`, true, cause);
  } finally {
    clearTimeout(timer);
  }
}

interface Sending {
  readonly request: WebhookRequest;
  readonly url: URL;
  readonly place: string;
  readonly signal: AbortSignal;
}

function webhookUrl({ url: text, allowHttp }: WebhookRequest): URL {
  if (text.length > maxUrlLength)
    throw permanent(`webhook: the URL is longer than ${maxUrlLength} characters`);
  const url = URL.parse(text);
  // The message omits the URL, because any part of the URL may be a secret.
  if (url === null)
    throw permanent(
      "webhook: the URL cannot be parsed; give an absolute one, as https://host/path",
    );
  if (url.protocol !== "https:" && !(allowHttp && url.protocol === "http:"))
    throw permanent(`webhook: the URL's scheme is ${url.protocol.slice(0, 20)}, not https:`);
  if (url.username !== "" || url.password !== "")
    throw permanent(`${placeOf(url)}: the URL has credentials; take them out, requests are signed`);
  return url;
}

/** Leaves out query and credentials, which may be secrets. */
function placeOf({ host, pathname }: URL): string {
  return `webhook to ${`${host}${pathname}`.slice(0, maxPlaceLength)}`;
}

async function send(sending: Sending): Promise<number> {
  const { request, url, place } = sending;
  const isAllowed = await addressRule(request);
  const addresses = await addressesOf(sending);
  for (const { address } of addresses)
    if (!isAllowed(address)) throw refusedAddress(place, address);

  const outgoing = clientRequest(sending, addresses);
  const write = () => outgoing.end(request.body);
  outgoing.once("socket", (socket: Socket) => {
    // Checks the address again before the request is written, however Node has connected.
    socket.once("connect", () => {
      const peer = String(socket.remoteAddress);
      if (!isAllowed(peer)) outgoing.destroy(refusedAddress(place, peer));
      else if (url.protocol === "https:") socket.once("secureConnect", write);
      else write();
    });
  });
  return statusOf(outgoing);
}

async function addressRule({
  allowPrivate,
}: WebhookRequest): Promise<(address: string) => boolean> {
  if (allowPrivate) return () => true;
  const { default: ipaddr } = await import("ipaddr.js");
  return (address) => isPublicAddress(ipaddr, address);
}

async function addressesOf({ request, url, place }: Sending): Promise<readonly LookupAddress[]> {
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const family = process.getBuiltinModule("node:net").isIP(hostname);
  if (family !== 0) return [{ address: hostname, family }];
  const lookupMs = Math.min(maxLookupMs, request.timeoutMs * maxLookupShare);
  const ending = new AbortController();
  const late = new WebhookError(`${place}: its name was not found within ${lookupMs} ms`, true);
  const timer = setTimeout(() => ending.abort(late), lookupMs);
  try {
    return await new Promise((resolve, reject) => {
      ending.signal.addEventListener("abort", () => reject(late), { once: true });
      request.lookup(hostname, ending.signal).then(resolve, reject);
    });
  } finally {
    clearTimeout(timer);
  }
}

function clientRequest(
  { request, url, place, signal }: Sending,
  addresses: readonly LookupAddress[],
): ClientRequest {
  try {
    // An import would load everything behind the lazy getters of `node:http`.
    const client = process.getBuiltinModule(url.protocol === "https:" ? "node:https" : "node:http");
    const options: RequestOptions & Pick<TcpNetConnectOpts, "autoSelectFamily"> = {
      method: "POST",
      headers: headersOf(request),
      signal,
      // A new agent: no connection is shared or kept, and no proxy of the environment is used.
      agent: false,
      // Makes Node ask `lookup` for all addresses, regardless of the process's settings.
      autoSelectFamily: true,
      lookup: (_hostname, _options, callback) => callback(null, [...addresses]),
    };
    return client.request(url, options);
  } catch (cause) {
    // Safe cast: Node throws only errors here. Their messages name a header, but not its value.
    throw permanent(`${place}: ${(cause as Error).message}`, cause);
  }
}

function headersOf(request: WebhookRequest): Record<string, string> {
  const { id, body, secret, nowMs, headers = {} } = request;
  const timestampSeconds = Math.floor(nowMs / 1_000);
  const all: Record<string, string> = { "content-type": "application/json" };
  for (const [name, value] of Object.entries(headers)) {
    if (reservedHeader.test(name)) throw new TypeError(`the header ${name} cannot be set`);
    all[name.toLowerCase()] = value;
  }
  all["webhook-id"] = id;
  all["webhook-timestamp"] = String(timestampSeconds);
  if (secret !== undefined)
    all["webhook-signature"] = signWebhook({ id, timestampSeconds, body, secret });
  return all;
}

function statusError(place: string, status: number): WebhookError {
  const isRedirect = status >= 300 && status <= 399;
  return new WebhookError(
    `${place}: answered with status ${status}${isRedirect ? ", and redirects are not followed" : ""}`,
    status === 429 || (status >= 500 && status <= 599),
  );
}

/** Only the cause has the address: the URL's author may see the message. */
function refusedAddress(place: string, address: string): WebhookError {
  return permanent(
    `${place}: the host has an address that is not public`,
    new Error(`${address} is not public`),
  );
}

function permanent(message: string, cause?: unknown): WebhookError {
  return new WebhookError(message, false, cause);
}

// IPv4-compatible addresses such as ::7f00:1, which the DNS lookup writes as ::127.0.0.1. ipaddr.js
// would read ::ffff:127.0.0.1, a different address.
const ipv4Compatible = /^::\d+\./;

/**
 * Whether an address is unicast, and not private, local, reserved or mapped to an embedded IPv4
 * address. IPv6 must be in 2000::/3, the only range that IANA has allocated
 * (https://www.iana.org/assignments/ipv6-address-space): ipaddr.js treats unknown ranges as
 * unicast.
 */
export function isPublicAddress(addresses: typeof ipaddr, address: string): boolean {
  if (!addresses.isValid(address) || ipv4Compatible.test(address)) return false;
  const parsed = addresses.process(address);
  if (parsed.range() !== "unicast") return false;
  return parsed instanceof addresses.IPv4 || parsed.match(addresses.IPv6.parse("2000::"), 3);
}

const maxAnswerBytes = 64 * 1024;

/** Resolves when the connection closes, even after a truncated body. */
export function statusOf(outgoing: ClientRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    let status: number | undefined;
    let failure: unknown;
    outgoing.on("response", (response) => {
      status = response.statusCode;
      drop(response, outgoing);
    });
    // A status 101 that the request did not ask for.
    outgoing.on("upgrade", (response) => {
      status = response.statusCode;
      outgoing.destroy();
    });
    outgoing.on("error", (error) => {
      failure = error;
    });
    outgoing.on("close", () => (status === undefined ? reject(failure) : resolve(status)));
  });
}

function drop(response: IncomingMessage, outgoing: ClientRequest): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) outgoing.destroy();
  });
  // A truncated body does not affect the delivery, but Node may require a listener for its error.
  response.on("error", () => {});
}
