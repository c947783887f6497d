import { AccessDeniedError } from "../../base/errors/errors.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { access, allows, type User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Database } from "../../base/types/database.ts";
import {
  type OperatorDatabase,
  type OperatorSession,
  operatorSession,
} from "../../parts/config/operate/operator-session.ts";
import { type ConfigDatabase, configSession } from "../../parts/config/read/resolver.ts";
import type { RowOwner } from "../../parts/config/read/rows.ts";
import type { Wall } from "../../parts/wall/wall.ts";
import type { Stack } from "../../parts/wall/walled-stack.ts";
import type { Adapters, DatabaseRequest } from "../runtime/adapters.ts";

const ownRequest = Symbol("request");
const ownStack = Symbol("stack");
const ownSender = Symbol("sender");

interface RequestDatabase extends Database {
  [ownRequest]: DatabaseRequest;
  [ownStack]: Stack | undefined;
  [ownSender]: Database | undefined;
}

/**
 * Creates a factory for the `ctx.db` of each request: the process's document client with a `send`
 * that carries the request's signal and refuses to start once the signal is aborted (specification
 * 4.5). The object inherits from the client, because the SDK's paginators require an instance.
 *
 * With a wall, which isolates tenants, the request has its own middlewares around the client's
 * middlewares. They apply to `send` of the client, of its class, and of clients derived from it.
 *
 * Others get a copy of the client's config, because the SDK stores the options of a client derived
 * from `ctx.db` there: how it converts values would apply to the whole process.
 */
export function requestDatabases(
  client: Database,
  wall?: Pick<Wall, "stackFor">,
): (request: DatabaseRequest) => Database {
  const common = Object.create(client, {
    send: { value: send },
    // Defined here, so that assigning them does not reach the client, which may be a proxy.
    [ownRequest]: { value: undefined, writable: true },
    [ownStack]: { value: undefined, writable: true },
    [ownSender]: { value: undefined, writable: true },
    config: { get: () => ({ ...client.config }) },
    [configSession]: { value: openSession },
    [operatorSession]: { value: openSession },
    ...(wall && { middlewareStack: { get: walled(wall) } }),
  }) as Database & ConfigDatabase & OperatorDatabase;
  function RequestDatabase(this: RequestDatabase, request: DatabaseRequest) {
    this[ownRequest] = request;
    this[ownStack] = undefined;
    this[ownSender] = undefined;
  }
  RequestDatabase.prototype = common;
  // Safe cast: `new` creates an object that inherits from `common`.
  const Constructor = RequestDatabase as unknown as new (request: DatabaseRequest) => Database;
  return (request) => new Constructor(request);

  function openSession(this: RequestDatabase, owner: RowOwner): OperatorSession {
    return this[ownRequest].sessionFor(owner);
  }

  function walled(wall: Pick<Wall, "stackFor">) {
    return function middlewareStack(this: RequestDatabase): Stack {
      this[ownStack] ??= wall.stackFor(client.middlewareStack, this[ownRequest]);
      return this[ownStack];
    };
  }

  /** The client's own config with the request's middlewares. */
  function senderOf(own: RequestDatabase): Database {
    if (wall === undefined) return client;
    own[ownSender] ??= databaseWith(client, () => own.middlewareStack);
    return own[ownSender];
  }

  // The SDK's `send` has three overloads, which differ after the command, some with callbacks.
  function send(
    this: RequestDatabase,
    ...parameters: [command: unknown, first?: unknown, second?: unknown]
  ): unknown {
    const { signal } = this[ownRequest];
    const original = client.send.bind(senderOf(this)) as (...parameters: unknown[]) => unknown;
    if (signal === undefined) return original(...parameters);
    const [command, first, second] = parameters;
    const options =
      typeof first === "object" && first !== null ? (first as { abortSignal?: AbortSignal }) : {};
    const callback = typeof first === "function" ? first : second;
    const own = options.abortSignal;
    const abortSignal = own === undefined ? signal : AbortSignal.any([own, signal]);
    if (!abortSignal.aborted)
      return original(
        ...[command, { ...options, abortSignal }],
        ...(callback === undefined ? [] : [callback]),
      );
    if (typeof callback !== "function") return Promise.reject(abortSignal.reason);
    queueMicrotask(() => callback(abortSignal.reason));
    return undefined;
  }
}

export function databaseWith(client: Database, stackOf: (stack: Stack) => Stack): Database {
  let stack: Stack | undefined;
  // Safe cast: the object inherits from the client.
  return Object.create(client, {
    middlewareStack: {
      get: () => {
        stack ??= stackOf(client.middlewareStack);
        return stack;
      },
    },
  }) as Database;
}

/**
 * Opens a database that reaches every tenant's rows, for callers with `systemAdmin` and for runs of
 * the system.
 *
 * @throws AccessDeniedError for any other caller; TypeError if `reason` is empty.
 */
export function openAcrossTenants(
  asking: DatabaseRequest & { readonly user: User; readonly log: Logger },
  adapters: Adapters,
  isSystem: boolean,
  reason: string,
): Database {
  const { user, log } = asking;
  if (!isSystem && !allows(access.systemAdmin, user))
    throw new AccessDeniedError("ctx.acrossTenants takes systemAdmin");
  if (typeof reason !== "string" || reason.trim() === "") {
    throw new TypeError(
      `ctx.acrossTenants: the reason is ${quoted(reason)}; give the purpose of the access as a string`,
    );
  }
  log.warn("tenant.crossed", { reason });
  return adapters.databaseAcrossTenants(asking);
}
