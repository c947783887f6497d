import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Server, type ServerInternals, serverInternals } from "../../../app/server/server.ts";
import { messageOf, refuse } from "./define-command.ts";

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
  const found = [loaded["server"], loaded["default"], ...Object.values(loaded)].find(isServer);
  if (found !== undefined) return found;
  refuse(`${module} exports no server; export the result of buildServer as \`server\``);
}

function isServer(value: unknown): value is Server {
  try {
    serverInternals(value as Server); // safe cast: throws for anything else
    return true;
  } catch {
    return false;
  }
}

/** @throws UsageError if the module does not exist; Error if it cannot be loaded. */
export async function loadModule(module: string): Promise<Readonly<Record<string, unknown>>> {
  const path = resolve(module);
  if (!existsSync(path)) refuse(`there is no module ${JSON.stringify(module)}`);
  const endEarly = () => {
    process.stderr.write(
      `keelson: ${module} has ended the process while it was loaded; name one that only builds the server\n`,
    );
    // Overrides the module's exit code: nothing was checked.
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
