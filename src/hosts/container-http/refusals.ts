import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { fail, recognize } from "../../app/run/failed-request.ts";
import { finish } from "../../app/run/pipeline.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import { FrameworkError, PipelineError } from "../../base/errors/errors.ts";
import { defined } from "../../base/types/defined.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { Connection } from "./connections.ts";

const malformed = (message: string, status: number, cause?: unknown) =>
  new PipelineError(message, status, { code: "malformed_request", ...defined({ cause }) });

export const refusals = Object.freeze({
  noHttp: (cause: unknown) => malformed("The request is not valid HTTP", 400, cause),
  noHost: () => new FrameworkError("malformed_request", "The request has no Host header"),
  twoHosts: () =>
    new FrameworkError("malformed_request", "The Host header names another host than :authority"),
  expectation: () => malformed("The Expect header has an expectation that is not supported", 417),
  coding: () =>
    malformed(
      "The Transfer-Encoding is not supported; send the body only chunked, or with its length",
      501,
    ),
  headersTooLarge: (cause?: unknown) =>
    malformed("The headers of the request are too large", 431, cause),
  late: (cause?: unknown) => malformed("The request took too long to arrive", 408, cause),
  tunnel: () => new FrameworkError("method_not_allowed", "Method not allowed"),
  shuttingDown: () => new PipelineError("The service is shutting down", 503),
  starting: () =>
    new PipelineError("The service is starting", 503, { headers: { "retry-after": "1" } }),
});

/** Time for a refused client to read the response before its connection is cut, in milliseconds. */
const cutAfterMs = 500;

/** Answers a refused request directly on its socket, because Node has no response object for it. */
export async function turnAway(
  scope: RequestScope,
  connection: Connection,
  socket: Duplex,
  // The method is `undefined` if the parser failed.
  { headers: sent, method }: Pick<HttpRequest, "headers"> & { readonly method: string | undefined },
  error: PipelineError,
): Promise<void> {
  connection.isClosing = true;
  socket.on("error", () => socket.destroy());
  scope.asked = { method, isEncrypted: "encrypted" in socket };
  const request = { headers: sent, method: "", gatewayClaims: undefined };
  const recognizing = recognize(scope, request);
  if (recognizing !== undefined) await recognizing;
  const { status, body, headers: own } = fail(scope, request, error);
  const headers = {
    ...finish(scope, request, own),
    date: new Date().toUTCString(),
    connection: "close",
  };
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  const { observer } = scope.runtime;
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => {
    const { writableFinished: isWhole } = socket;
    const bytes = isWhole ? Buffer.byteLength(String(body)) : 0;
    observer?.ended(scope, { kind: "request", method, status, bytes, isAborted: !isWhole });
  });
  setTimeout(() => socket.destroy(), cutAfterMs).unref(); // a client may never close its side
}
