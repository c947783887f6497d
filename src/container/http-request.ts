import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { FrameworkError, isTypedError, type PipelineError } from "../errors/errors.ts";
import { bodyTooLarge } from "../http/body.ts";
import { emptyHeaders, type HeaderMap } from "../http/header-map.ts";
import type { HttpRequest } from "../http/message.ts";
import type { Connection, OpenRequest } from "./connections.ts";

/** Reads a message of Node's HTTP server as a request. */
export function httpRequest(
  message: IncomingMessage,
  response: ServerResponse,
  connection: Connection,
  refusal: PipelineError | undefined,
): HttpRequest & OpenRequest {
  // Both are always there on a server's side; the types are shared with the client's.
  const { method, url } = message as IncomingMessage & { readonly method: string; readonly url: string };
  const { path, query } = splitTarget(url);
  const headers = headersOf(message);
  const departure = new AbortController();
  response.on("close", () => {
    if (!response.writableFinished) departure.abort(new DOMException("The client has gone", "AbortError"));
  });
  return {
    requestId: "",
    method,
    path,
    query,
    headers,
    ip: message.socket.remoteAddress,
    signal: departure.signal,
    abort: (reason) => departure.abort(reason),
    gatewayClaims: undefined, // no gateway in front of a container is believed
    refusal,
    readBody: (limitBytes) => readBody(message, limitBytes, connection),
  };
}

/** The headers of a message; its repeated ones Node has joined, `set-cookie` alone it has as a list. */
export function headersOf({ headers: received }: IncomingMessage): HeaderMap {
  const headers = Object.assign(emptyHeaders(), received) as HeaderMap; // safe: the list is replaced below
  if (received["set-cookie"] !== undefined) headers["set-cookie"] = received["set-cookie"].join(", ");
  return headers;
}

/** Splits a request target; an absolute one (`GET http://host/path`) is as good as its path. */
export function splitTarget(target: string): { path: string; query: string } {
  const local = /^https?:\/\//i.test(target) ? target.replace(/^https?:\/\/[^/?#]*/i, "") || "/" : target;
  const mark = local.indexOf("?");
  return mark === -1 ? { path: local, query: "" } : { path: local.slice(0, mark), query: local.slice(mark + 1) };
}

/** No body at all. */
export const noBytes = new Uint8Array(0);

function readBody(message: IncomingMessage, limitBytes: number, connection: Connection): Uint8Array | Promise<Uint8Array> {
  const { "content-length": length, "transfer-encoding": encoding } = message.headers;
  if (encoding === undefined && (length === undefined || length === "0")) return noBytes;
  return receiveBody(message, length, limitBytes, connection);
}

/** Where a body that is being read can be failed from outside. */
export interface BodyHolder {
  failBody: ((error: unknown) => void) | undefined;
}

/**
 * Reads a body.
 *
 * @throws FrameworkError `payload_too_large` above `limitBytes`, at once where its length says so.
 */
export function receiveBody(
  body: Readable,
  length: string | undefined,
  limitBytes: number,
  holder: BodyHolder,
): Promise<Uint8Array> {
  if (Number(length) > limitBytes) throw bodyTooLarge(limitBytes);
  return receive(body, limitBytes, holder);
}

async function receive(body: Readable, limitBytes: number, holder: BodyHolder): Promise<Uint8Array> {
  // What breaks in mid-body is an error of the connection, which the message never hears of.
  const broken = new Promise<never>((_, reject) => {
    holder.failBody = reject;
  });
  try {
    return await Promise.race([collect(body, limitBytes), broken]);
  } catch (error) {
    if (isTypedError(error)) throw error;
    throw new FrameworkError("malformed_request", "The body ended early", { cause: error });
  } finally {
    holder.failBody = undefined;
  }
}

async function collect(body: Readable, limitBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let received = 0;
  // The message outlives a refusal: its socket still has to carry the answer.
  for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    received += chunk.byteLength;
    if (received > limitBytes) throw bodyTooLarge(limitBytes);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
