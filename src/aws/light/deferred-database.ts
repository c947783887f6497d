import type { Database } from "../../base/types/database.ts";

/** A database whose client is made when it is first asked for anything. */
export interface DeferredDatabase {
  readonly database: Database;
  /** Makes the client, once. */
  load(): Promise<unknown>;
  /** Whether the client is made, or being made. */
  isAsked(): boolean;
  /** Destroys the client, where there is one. */
  close(): void;
}

/** The two ways to make a client: one waits for its modules, one does not. */
export interface ClientMaker {
  later(): Promise<() => Database>;
  now(): Database;
}

/**
 * Defers a document client. `send` waits for it. Everything else that a client has, or is, is there at once: whoever asks
 * for that has it made on the spot.
 */
export function deferDatabase({ later, now }: ClientMaker): DeferredDatabase {
  let client: Database | undefined;
  let loading: Promise<Database> | undefined;

  const load = (): Promise<Database> => {
    loading ??= later().then(
      (make) => {
        client ??= make();
        return client;
      },
      (error: unknown) => {
        loading = undefined;
        throw error;
      },
    );
    return loading;
  };
  const made = (): Database => {
    client ??= now();
    return client;
  };

  // As the SDK's: a promise, or nothing where the last argument is a callback. What inherits from it sends with its own middlewares.
  const send = function (
    this: unknown,
    ...given: [command: unknown, first?: unknown, second?: unknown]
  ): unknown {
    const sendTo = (made: Database) =>
      (made.send as (...given: unknown[]) => unknown).apply(this === database ? made : this, given);
    if (client !== undefined) return sendTo(client);
    const callback = given.find((argument) => typeof argument === "function");
    if (callback === undefined) return load().then(sendTo);
    load().then(sendTo, callback as (error: unknown) => void);
    return undefined;
  };

  // Safe: it is nothing that the client is not.
  const database: Database = new Proxy({} as Database, {
    get: (_target, name, receiver) => {
      if (name === "send") return send;
      if (name === "then") return undefined; // it is no promise: what awaits it loads nothing
      return Reflect.get(made(), name, receiver);
    },
    set: (_target, name, value, receiver) => {
      if (receiver === database) return Reflect.set(made(), name, value);
      // What inherits from it keeps what it is given to itself.
      return Reflect.defineProperty(receiver, name, {
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    },
    has: (_target, name) => Reflect.has(made(), name),
    getPrototypeOf: () => Reflect.getPrototypeOf(made()),
  });
  return {
    database,
    load,
    isAsked: () => client !== undefined || loading !== undefined,
    close: () => client?.destroy(),
  };
}
