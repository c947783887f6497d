import { openAwsAdapters } from "../aws/adapters.ts";
import type { PowertoolsThreshold } from "../log/load-powertools.ts";
import type { Runtime } from "../run/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import type { Server } from "../server/server.ts";

/** Loads the client that the first request waits for. */
export const loadSdk = (): Promise<unknown> => import("../aws/dynamodb-sdk.ts");

/** Binds a server to the environment and to AWS. */
export function createLambdaRuntime(server: Server, powertools: PowertoolsThreshold | undefined): Runtime {
  return createRuntime(server, {
    variables: process.env,
    powertools,
    openAdapters: (runtime) => openAwsAdapters(runtime, process.env, "check", runtime.light.size > 0),
    isFrozenBetweenEvents: true,
  });
}
