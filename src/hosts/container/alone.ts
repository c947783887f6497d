import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { Server } from "../../app/server/server.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { bindAdapters } from "./adapters.ts";

/** Binds a server the way a container does, for a process without one: a script or a REPL. */
export async function bindAlone(server: Server): Promise<Runtime> {
  const variables = process.env;
  const binding = await bindAdapters(server, variables);
  return createRuntime(server, {
    variables,
    powertools: await loadPowertools(variables),
    ...binding,
  });
}
