import type { Environment } from "../../base/process/environment.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type { ServerOptions } from "./options.ts";
import type { Registry } from "./registry.ts";

/** Closes a resource at shutdown. */
export type Closer = () => Awaitable<void>;

/** Checks whether a resource is ready. Returning `false` or throwing means that it is not. */
export type ReadyCheck = () => unknown;

/** A server before a host binds it. */
export interface DeclaredServer {
  readonly options: ServerOptions;
  readonly environment: Environment;
  readonly registry: Registry;
  readonly closers: ReadonlyMap<string, Closer>;
  readonly checks: ReadonlyMap<string, ReadyCheck>;
}
