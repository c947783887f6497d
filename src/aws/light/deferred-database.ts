import type { Database } from "../../base/types/database.ts";

/** Defers a document client. `send` waits for it; any other member creates it immediately. */
export function deferDatabase({
  later,
  now,
}: {
  readonly later: () => Promise<() => Database>;
  readonly now: () => Database;
}) {
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

  // Like the SDK's `send`: a promise, or nothing with a callback. An object that inherits from the
  // database sends with its own middlewares.
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

  // Safe: the proxy forwards every other member to the client.
  const database: Database = new Proxy({} as Database, {
    get: (_target, name, receiver) => {
      if (name === "send") return send;
      if (name === "then") return undefined; // not a promise: awaiting the database must not load the SDK
      return Reflect.get(made(), name, receiver);
    },
    set: (_target, name, value, receiver) => {
      if (receiver === database) return Reflect.set(made(), name, value);
      // An inheriting object keeps the properties that are set on it.
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
    /** Creates the client. After a failure, the next call tries again. */
    load,
    isAsked: () => client !== undefined || loading !== undefined,
    close: () => client?.destroy(),
  };
}
