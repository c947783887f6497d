import type { Database } from "../context/pipeline-context.ts";

/**
 * The `ctx.db` of one request: the process's document client, whose `send` carries the
 * request's signal and refuses to start once it is aborted (specification 4.5). It inherits
 * from the client, because the SDK's paginators insist on an instance of it.
 */
export function requestDatabase<Extras extends object>(
  client: Database,
  signal: AbortSignal | undefined,
  extras: Extras,
): Database & Extras {
  const database = Object.create(client) as Database & Extras; // safe: it gets `extras` in the next lines
  Object.assign(database, extras);
  if (signal === undefined) return database;

  // The SDK's `send` has three overloads, with callbacks among them; they differ in what
  // follows the command only, so the arguments pass through as they are.
  const send = client.send.bind(client) as (...parameters: unknown[]) => unknown;
  const sendWithSignal = (command: unknown, first?: unknown, second?: unknown) => {
    const options = typeof first === "object" && first !== null ? (first as { abortSignal?: AbortSignal }) : {};
    const callback = typeof first === "function" ? first : second;
    const own = options.abortSignal;
    const abortSignal = own === undefined ? signal : AbortSignal.any([own, signal]);
    if (!abortSignal.aborted) {
      return callback === undefined
        ? send(command, { ...options, abortSignal })
        : send(command, { ...options, abortSignal }, callback);
    }
    if (typeof callback !== "function") return Promise.reject(abortSignal.reason);
    queueMicrotask(() => callback(abortSignal.reason));
    return undefined;
  };
  database.send = sendWithSignal as Database["send"]; // safe: it takes what each overload takes
  return database;
}
