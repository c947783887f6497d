import type { IncomingMessage, ServerResponse } from "node:http";
import type { PipelineError } from "../errors/errors.ts";
import { emptyHeaders, type HeaderMap } from "../http/headers.ts";
import type { HttpRequest } from "../http/message.ts";
import type { HeldBytes } from "./byte-budget.ts";
import type { Connection, OpenRequest } from "./connections.ts";
import { receiveBody } from "./receive-body.ts";

/**
 * Reads a message of Node's HTTP server as a request.
 *
 * @param expectsContinue - its client sends the body when it is told that it is going to be read
 */
export function httpRequest(
  message: IncomingMessage,
  response: ServerResponse,
  connection: Connection,
  held: HeldBytes,
  refusal: PipelineError | undefined,
  expectsContinue: boolean,
): HttpRequest & OpenRequest {
  // Both are always there on a server's side; the types are shared with the client's.
  const { method, url } = message as IncomingMessage & { readonly method: string; readonly url: string };
  const { path, query } = splitTarget(url);
  const headers = headersOf(message);
  const departure = new AbortController();
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
    readBody: (limitBytes) => {
      if (expectsContinue) response.writeContinue();
      return readBody(message, limitBytes, connection, held);
    },
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

function readBody(
  message: IncomingMessage,
  limitBytes: number,
  connection: Connection,
  held: HeldBytes,
): Uint8Array | Promise<Uint8Array> {
  const { "content-length": length, "transfer-encoding": encoding } = message.headers;
  if (encoding === undefined && (length === undefined || length === "0")) return noBytes;
  return receiveBody(message, limitBytes, connection, held);
}
