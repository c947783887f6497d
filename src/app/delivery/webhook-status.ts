import type { ClientRequest, IncomingMessage } from "node:http";

const maxAnswerBytes = 64 * 1024;

/** Settles when the connection closes. A received status counts, whatever its body. */
export function statusOf(outgoing: ClientRequest): Promise<number> {
  return new Promise((resolve, reject) => {
    let status: number | undefined;
    let failure: unknown;
    outgoing.on("response", (response) => {
      status = response.statusCode;
      drop(response, outgoing);
    });
    // An unrequested status 101.
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
  // A truncated body does not concern the delivery. Node may not always tolerate a missing
  // listener.
  response.on("error", () => {});
}
