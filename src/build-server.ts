import type { Feature } from "./app/features/feature.ts";
import type { ServerOptions } from "./app/registry/options.ts";
import { type BindAlone, buildServer as buildWithHost, type Server } from "./app/server/server.ts";

/**
 * Builds a server from features and options. It is synchronous and does no I/O, because hosts open
 * connections at first use.
 *
 * @throws BootError with every problem of features, keys, routes and options (specification 7.4).
 * @example
 * export const server = buildServer({ features: [files, billing], config: { "files:config:max-upload-size-mb": 50 } });
 */
export function buildServer<const Features extends readonly Feature[]>(
  options: ServerOptions<Features>,
): Server {
  return buildWithHost(options, bindAlone);
}

/**
 * Binds a server like a container. Hides the import from bundlers, because otherwise each function
 * bundle would include the container and the embedded stack.
 */
const bindAlone: BindAlone = async (server, noHost) => {
  const here = import.meta.url;
  const host = new URL(`./hosts/container/adapters${here.slice(here.lastIndexOf("."))}`, here).href;
  // The cast is safe: the module exports this function.
  const loaded = import(/* @vite-ignore */ host) as Promise<{ readonly bindAlone: BindAlone }>;
  const { bindAlone: bind } = await loaded.catch(
    /* v8 ignore next -- only in a bundle, without files next to it */
    (cause: unknown) => {
      throw noHost(cause);
    },
  );
  return bind(server, noHost);
};
