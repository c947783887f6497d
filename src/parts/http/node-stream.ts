import type { Readable } from "node:stream";

/** Checks whether a body is a Node stream, readable or not. */
export function isNodeStream(body: object): body is Readable {
  return (
    "pipe" in body &&
    typeof body.pipe === "function" &&
    "on" in body &&
    typeof body.on === "function"
  );
}

/**
 * Adds an error listener to a Node stream. Without one, a stream that fails between the handler's
 * return and the first read ends the process. The reader still gets the error.
 */
export function guard(body: unknown): void {
  if (typeof body === "object" && body !== null && isNodeStream(body))
    body.on("error", () => undefined);
}
