import { systemCode } from "../../base/errors/errors.ts";

/** Error whose message is complete, so that its stack is not logged. */
export class ListenError extends Error {}

/**
 * Turns a `listen` error about the port into one sentence, and returns any other error unchanged.
 */
export function listenError(error: unknown, port: number): unknown {
  const reason = reasons.get(systemCode(error));
  return reason === undefined ? error : new ListenError(`Port ${port} ${reason}`);
}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "is in use: stop the process that listens on it, or set PORT to another one"],
  ["EACCES", "may not be used by this user: set PORT to one above 1023"],
]);
