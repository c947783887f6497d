import type { ClientRequest, IncomingMessage } from "node:http";

const maxAnswerBytes = 64 * 1024;

/** Resolves to the response's status when the connection closes, even after a truncated body. */
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
