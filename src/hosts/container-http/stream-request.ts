import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import { addHeader, emptyHeaders, type HeaderMap } from "../../parts/http/headers.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { Connection, OpenRequest } from "./connections.ts";
import { splitTarget } from "./exchange.ts";
import type { HttpSettings } from "./http-options.ts";
import { type HeldBytes, noBytes, receiveBody } from "./receive-body.ts";
import { refusals } from "./refusals.ts";

export interface StreamRequest extends HttpRequest, OpenRequest {
  requestId: string;
  readonly signal: AbortSignal;
  log?: Logger;
}

export function streamRequest(
  stream: ServerHttp2Stream,
  received: IncomingHttpHeaders,
  fields: readonly string[],
  facts: Pick<StreamRequest, "ip" | "nowMs"> & {
    readonly settings: HttpSettings;
    readonly held: HeldBytes;
  },
): StreamRequest {
  const { settings, held, ip, nowMs } = facts;
  const { ":method": method = "", ":path": target = "", ":authority": authority } = received;
  const { path, query } = splitTarget(target);
  const headers = headersOf(fields);
  const refusal = refusalOf(received, headers, settings);
  if (authority !== undefined) headers["host"] = authority;
  const departure = new AbortController();
  const body: Pick<Connection, "failBody"> = { failBody: undefined };
  return {
    requestId: "",
    method,
    path,
    query,
    headers,
    ip,
    isEncrypted: true,
    nowMs,
    signal: departure.signal,
    abort: (reason) => {
      departure.abort(reason);
      body.failBody?.(reason);
    },
    gatewayClaims: undefined, // a container does not trust claims of a gateway
    refusal,
    readBody: (limitBytes) => {
      if (stream.endAfterHeaders) return noBytes;
      if (headers["expect"] !== undefined && !stream.destroyed)
        stream.additionalHeaders({ ":status": 100 });
      const late = setTimeout(() => body.failBody?.(refusals.late()), settings.requestTimeoutMs);
      return receiveBody(stream, limitBytes, body, held).finally(() => clearTimeout(late));
    },
  };
}

/**
 * Returns all header fields from a flat list of names and values. Node's own object drops
 * repetitions of some fields.
 */
function headersOf(fields: readonly string[]): HeaderMap {
  const headers = emptyHeaders();
  let name = "";
  for (const [index, text] of fields.entries()) {
    if (index % 2 === 0) name = text;
    else if (!name.startsWith(":")) addHeader(headers, name, text);
  }
  return headers;
}

/** Returns why to refuse a request that is valid HTTP/2, such as one with two different hosts. */
function refusalOf(
  received: IncomingHttpHeaders,
  { expect, host }: Readonly<HeaderMap>,
  { maxHeaderBytes }: HttpSettings,
): PipelineError | undefined {
  const bytes = Object.entries(received).reduce(
    (sum, [name, value]) => sum + name.length + String(value).length + 32,
    0,
  );
  if (bytes > maxHeaderBytes) return refusals.headersTooLarge();
  if (received[":method"] === "CONNECT") return refusals.tunnel();
  const { ":authority": authority = host } = received;
  if (host !== undefined && hostOf(host) !== hostOf(String(authority))) return refusals.twoHosts();
  return expect === undefined || /^100-continue$/i.test(expect)
    ? undefined
    : refusals.expectation();
}

function hostOf(authority: string): string {
  return authority.toLowerCase().replace(/:443$/, "");
}
