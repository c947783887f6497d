import type { Measuring } from "../../app/metrics/measuring.ts";
import { configReaders } from "../../app/registry/config-readers.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { Server } from "../../app/server/server.ts";
import { openAwsAdapters } from "../../aws/adapters/adapters.ts";
import type { PowertoolsThreshold } from "../../base/log/load-powertools.ts";

/** Loads the client that the first request waits for. */
export const loadSdk = (): Promise<unknown> => import("../../aws/clients/dynamodb-sdk.ts");

/** Opens the function's metrics, if they are configured. */
export const openMeasuring = async (server: DeclaredServer): Promise<Measuring | undefined> =>
  server.options.metrics &&
  (await import("../../app/metrics/emf-metrics.ts")).openLambdaMetrics(server, process.env);

/** Flushes the metrics of an invocation before it ends, because the process may then be frozen. */
export function measured<Result>({ metrics }: Runtime, result: Promise<Result>): Promise<Result> {
  return metrics === undefined ? result : result.finally(metrics.flush);
}

/** Binds a server to the environment and to AWS. */
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
