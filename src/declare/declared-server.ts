import type { Environment } from "../process/environment.ts";
import type { Awaitable } from "./handler.ts";
import type { ServerOptions } from "./options.ts";
import type { Registry } from "./registry.ts";

/** Releases a resource at shutdown. */
export type Closer = () => Awaitable<void>;

/** Tells whether a resource is ready: `false`, or a throw, says that it is not. */
export type ReadyCheck = () => unknown;

/** What is known of a server before a host binds it. */
export interface DeclaredServer {
  readonly options: ServerOptions;
  readonly environment: Environment;
  readonly registry: Registry;
  readonly closers: ReadonlyMap<string, Closer>;
  readonly checks: ReadonlyMap<string, ReadyCheck>;
}
