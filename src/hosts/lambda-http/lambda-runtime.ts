import type { Measuring } from "../../app/metrics/run-metrics.ts";
import { configReaders, type DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { Server } from "../../app/server/server.ts";
import { openAwsAdapters } from "../../aws/adapters/adapters.ts";
import { readsWithoutSdk } from "../../aws/light/light-database.ts";
import type { PowertoolsThreshold } from "../../base/log/load-powertools.ts";
import { isStartedOnDemand } from "../../base/process/platform.ts";

export function createLambdaRuntime(
  server: Server,
  powertools: PowertoolsThreshold | undefined,
  measuring?: Measuring,
): Runtime {
  return createRuntime(server, {
    variables: process.env,
    powertools,
    measuring,
    openAdapters: (runtime) =>
      openAwsAdapters(runtime, process.env, "check", configReaders(runtime.server).size > 0),
    isFrozenBetweenEvents: true,
  });
}

export const openMeasuring = async (server: DeclaredServer): Promise<Measuring | undefined> =>
  server.options.metrics &&
  (await import("../../app/metrics/emf-metrics.ts")).openLambdaMetrics(server, process.env);

export const loadSdk = (): Promise<unknown> => import("../../aws/clients/dynamodb-sdk.ts");

/**
 * Loads the DynamoDB client before the first request needs it, unless every handler only reads
 * configuration, without a client, and a caller waits for the cold start.
 *
 * @param name - the only handler that the function calls; default: every handler with a route.
 */
export function loadSdkForHttp(
  server: DeclaredServer,
  name?: string,
): Promise<unknown> | undefined {
  const readers = configReaders(server);
  const called = [...server.registry.handlers.values()].filter((handler) =>
    name === undefined ? handler.route : handler.name === name,
  );
  const needsNoSdk =
    isStartedOnDemand(process.env) &&
    readsWithoutSdk(process.env) &&
    called.every((handler) => readers.has(handler));
  return needsNoSdk ? undefined : loadSdk();
}
