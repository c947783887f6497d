import { type Adapters, createRuntime, type Runtime } from "../app/runtime.ts";
import { type Server, serverInternals } from "../app/server.ts";
import { closeAtShutdown } from "./short-close.ts";

/** The runtime of a server for one invocation: bound from the environment, once a process. */
export function lambdaRuntime(server: Server): Runtime {
  const state = serverInternals(server);
  state.started = true;
  state.runtime ??= createRuntime(server, {
    variables: process.env,
    openAdapters: open,
    isFrozenBetweenEvents: true,
  });
  state.runtime.log.refreshSampling();
  return state.runtime;
}

/**
 * Lets `server.ready()` be awaited before the first invocation, which alone would bind a runtime, and has the server closed
 * when the process is told to end.
 */
export function prepareLambda(server: Server): void {
  const state = serverInternals(server);
  state.ready ??= async () => void (await lambdaRuntime(server).adapters());
  preload();
  closeAtShutdown(state, () => lambdaRuntime(server));
}

/**
 * In Lambda what every first invocation asks for is loaded while the function starts, when it has a whole processor whatever
 * its memory. Nothing waits for it, and what fails fails again where it is needed.
 */
function preload(): void {
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] === undefined) return;
  void Promise.allSettled([import("../aws/adapters.ts"), import("../aws/dynamodb-sdk.ts")]);
}

/** Loaded with the first invocation, or before: what a cold start imports is what it waits for (`bundle-import` in `bench/results.json`). */
async function open(runtime: Runtime): Promise<Adapters> {
  const { openAwsAdapters } = await import("../aws/adapters.ts");
  return openAwsAdapters(runtime, process.env);
}
