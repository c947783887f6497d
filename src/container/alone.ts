import { loadPowertools } from "../log/load-powertools.ts";
import type { Runtime } from "../run/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import type { Server } from "../server/server.ts";
import { bindAdapters } from "./adapters.ts";

/** Binds a server as a container would, for a process that is none: a script, a REPL. */
export async function bindAlone(server: Server): Promise<Runtime> {
  const variables = process.env;
  const binding = await bindAdapters(server, variables);
  return createRuntime(server, {
    variables,
    powertools: await loadPowertools(variables),
    ...binding,
  });
}
