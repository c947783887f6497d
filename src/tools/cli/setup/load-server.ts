import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Server, type ServerInternals, serverInternals } from "../../../app/server/server.ts";
import { messageOf, UsageError } from "./define-command.ts";

export async function loadServer(module: string): Promise<ServerInternals> {
  return serverInternals(await findServer(module));
}

/**
 * Returns the server that a module exports as `server`, as the default or under any other name.
 *
 * @throws UsageError if no such module or server exists; Error if the module cannot be loaded.
 */
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

/** @throws UsageError if the module does not exist; Error if it cannot be loaded. */
export async function loadModule(module: string): Promise<Readonly<Record<string, unknown>>> {
  const path = resolve(module);
  if (!existsSync(path)) throw new UsageError(`there is no module ${JSON.stringify(module)}`);
  const endEarly = () => {
    process.stderr.write(
      `keelson: ${module} has ended the process while it was loaded; name one that only builds the server\n`,
    );
    // Overrides the module's exit code, because the command has not checked anything.
    process.exitCode = 2;
  };
  process.once("exit", endEarly);
  try {
    return await import(/* @vite-ignore */ pathToFileURL(path).href);
  } catch (error) {
    throw new Error(`${module} cannot be loaded: ${messageOf(error)}`, { cause: error });
  } finally {
    process.off("exit", endEarly);
  }
}

function serverOf(value: unknown): Server | undefined {
  try {
    const server = value as Server; // safe cast: serverInternals throws for anything else
    serverInternals(server);
    return server;
  } catch {
    return undefined;
  }
}
