import type { Measuring } from "../../app/metrics/measuring.ts";
import { configReaders, type DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { Server } from "../../app/server/server.ts";
import { openAwsAdapters } from "../../aws/adapters/adapters.ts";
import type { PowertoolsThreshold } from "../../base/log/load-powertools.ts";

export const loadSdk = (): Promise<unknown> => import("../../aws/clients/dynamodb-sdk.ts");

export const openMeasuring = async (server: DeclaredServer): Promise<Measuring | undefined> =>
  server.options.metrics &&
  (await import("../../app/metrics/emf-metrics.ts")).openLambdaMetrics(server, process.env);

/** Flushes the metrics before an invocation ends, because Lambda may then freeze the process. */
export function measured<Result>({ metrics }: Runtime, result: Promise<Result>): Promise<Result> {
  return metrics === undefined ? result : result.finally(metrics.flush);
}

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
