import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { fail, recognize } from "../../app/run/failed-request.ts";
import { finish } from "../../app/run/pipeline.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Connections } from "./connections.ts";

interface TurnedAway {
  readonly headers: Readonly<Record<string, string>>;
  /** Request method; `undefined` if the parser failed. */
  readonly method: string | undefined;
}

/** Time for a refused client to read the response before its connection is cut, in milliseconds. */
const cutAfterMs = 500;

/** Answers a refused request directly on its socket, because Node has no response object for it. */
export async function turnAway(
  scope: RequestScope,
  connections: Connections,
  socket: Duplex,
  { headers: sent, method }: TurnedAway,
  error: PipelineError,
): Promise<void> {
  connections.of(socket).isClosing = true;
  socket.on("error", () => socket.destroy());
  scope.asked = { method, isEncrypted: "encrypted" in socket };
  const request = { headers: sent, method: "", gatewayClaims: undefined };
  const recognizing = recognize(scope, request);
  if (recognizing !== undefined) await recognizing;
  const response = fail(scope, request, error);
  const { status, body } = response;
  const headers = {
    ...finish(scope, request, response.headers),
    date: new Date().toUTCString(),
    connection: "close",
  };
  const fields = Object.entries(headers);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
  ];
  const { observer } = scope.runtime;
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => {
    const { writableFinished: isWhole } = socket;
    const bytes = isWhole ? Buffer.byteLength(String(body)) : 0;
    observer?.ended(scope, { kind: "request", method, status, bytes, isAborted: !isWhole });
  });
  cutLater(socket); // a client may never close its side
}

function cutLater(socket: Duplex): void {
  setTimeout(() => socket.destroy(), cutAfterMs).unref();
}
