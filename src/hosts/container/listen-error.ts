import { systemCode } from "../../base/errors/system-code.ts";

/** A port that cannot be listened on: its message says it all, a stack trace would say nothing more. */
export class ListenError extends Error {}

/** What an error of `listen` comes to: one sentence, where it is about the port; otherwise the error itself. */
export function listenError(error: unknown, port: number): unknown {
  const reason = reasons.get(systemCode(error));
  return reason === undefined ? error : new ListenError(`Port ${port} ${reason}`);
}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "is in use: stop the process that listens on it, or set PORT to another one"],
  ["EACCES", "may not be used by this user: set PORT to one above 1023"],
]);
