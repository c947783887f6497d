import { openAwsAdapters } from "../aws/adapters.ts";
import type { DeclaredServer } from "../declare/declared-server.ts";
import type { PowertoolsThreshold } from "../log/load-powertools.ts";
import type { Measuring } from "../observe/measuring.ts";
import type { Runtime } from "../run/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import type { Server } from "../server/server.ts";

/** Loads the client that the first request waits for. */
export const loadSdk = (): Promise<unknown> => import("../aws/dynamodb-sdk.ts");

/** Opens what a function measures with, where it does. */
export const openMeasuring = async (server: DeclaredServer): Promise<Measuring | undefined> =>
  server.options.metrics &&
  (await import("./emf-metrics.ts")).openLambdaMetrics(server, process.env);

/** What was measured during an invocation is written before it ends: the process may be frozen then. */
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
      openAwsAdapters(runtime, process.env, "check", runtime.light.size > 0),
    isFrozenBetweenEvents: true,
  });
}
