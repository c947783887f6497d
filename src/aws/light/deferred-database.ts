import { lazy } from "../../base/process/lazy.ts";
import type { Database } from "../../base/types/database.ts";
import { closeDatabase } from "../clients/dynamodb.ts";

/**
 * Database whose client is made with its first use: `send` waits for `later`, others call `now`.
 */
export function deferDatabase({
  later,
  now,
}: {
  readonly later: () => Promise<() => Database>;
  readonly now: () => Database;
}) {
  let client: Database | undefined;
  const loaded = lazy(async () => {
    const make = await later();
    client ??= make();
    return client;
  });
  const made = (): Database => {
    client ??= now();
    return client;
  };

  // Like the SDK's, returns a promise, or nothing if given a callback. An object that inherits from
  // the database sends with its own middlewares.
  const send = function (
    this: unknown,
    ...given: [command: unknown, first?: unknown, second?: unknown]
  ): unknown {
    const sendTo = (made: Database) =>
      (made.send as (...given: unknown[]) => unknown).apply(this === database ? made : this, given);
    if (client !== undefined) return sendTo(client);
    const callback = given.find((argument) => typeof argument === "function");
    if (callback === undefined) return loaded.open().then(sendTo);
    loaded.open().then(sendTo, callback as (error: unknown) => void);
    return undefined;
  };

  // Safe: the proxy forwards every other member to the client.
  const database: Database = new Proxy({} as Database, {
    get: (_target, name, receiver) => {
      if (name === "send") return send;
      if (name === "then") return undefined; // no promise: awaiting the database must not load the SDK
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
    load: loaded.open,
    isAsked: () => client !== undefined || loaded.opening !== undefined,
    close: () => client && closeDatabase(client),
  };
}
