import { createRuntime } from "../../app/server/create-runtime.ts";
import type { BindAlone } from "../../app/server/server.ts";
import { loadPowertools } from "../../base/log/log-threshold.ts";
import { bindAdapters } from "./adapters.ts";

/** Creates the runtime of a server as a container does, for a script or a REPL. */
export const bindAlone: BindAlone = async (server) => {
  const variables = process.env;
  const binding = await bindAdapters(server, variables);
  return createRuntime(server, {
    variables,
    powertools: await loadPowertools(variables),
    ...binding,
  });
};
