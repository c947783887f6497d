import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Server, type ServerInternals, serverInternals } from "../../../app/server/server.ts";
import { UsageError } from "./run-command.ts";

/**
 * The server that a module exports: as `server`, as its default, or under any name.
 *
 * @throws UsageError where there is no such module, or no server in it; Error where it cannot be loaded.
 */
export async function loadServer(module: string): Promise<ServerInternals> {
  return serverInternals(await findServer(module));
}

/** The same as hosts take it. @throws as {@link loadServer}. */
export async function findServer(module: string): Promise<Server> {
  const loaded = await loadModule(module);
  const named = ["server", "default"].flatMap((name) => serverOf(loaded[name]) ?? []);
  const [server] =
    named.length > 0 ? named : Object.values(loaded).flatMap((value) => serverOf(value) ?? []);
  if (server === undefined)
    throw new UsageError(
      `${module} exports no server; export the result of buildServer as \`server\``,
    );
  return server;
}

/**
 * What a module exports.
 *
 * @throws UsageError where there is no such module; Error where it cannot be loaded.
 */
export async function loadModule(module: string): Promise<Readonly<Record<string, unknown>>> {
  const path = resolve(module);
  if (!existsSync(path)) throw new UsageError(`there is no module ${JSON.stringify(module)}`);
  const endEarly = () => {
    process.stderr.write(
      `keelson: ${module} has ended the process while it was loaded; name one that only builds the server\n`,
    );
    // Whatever the module said: nobody is to believe that it was looked at.
    process.exitCode = 2;
  };
  process.once("exit", endEarly);
  try {
    return await import(/* @vite-ignore */ pathToFileURL(path).href);
  } catch (error) {
    throw new Error(
      `${module} cannot be loaded: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  } finally {
    process.off("exit", endEarly);
  }
}

function serverOf(value: unknown): Server | undefined {
  try {
    const server = value as Server; // safe: it throws for anything else
    serverInternals(server);
    return server;
  } catch {
    return undefined;
  }
}
