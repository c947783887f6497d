import { configHandlers } from "./admin/config-handlers.ts";
import type { ServerOptions } from "./declare/options.ts";
import { buildServer as buildBareServer, type Server } from "./server/server.ts";

/**
 * Builds a server from features and options. It is synchronous, does no I/O, and captures no
 * adapter: hosts bind them at first use.
 *
 * @throws BootError with every problem of features, keys, routes and options (specification 7.4).
 * @example
 * export const server = buildServer({ features: [files, billing], config: { "files:config:max-upload-size-mb": 50 } });
 */
export function buildServer(options: ServerOptions): Server {
  return buildBareServer(options, configHandlers);
}
