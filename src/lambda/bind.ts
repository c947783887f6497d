import type { Runtime } from "../app/runtime.ts";
import { type Server, serverInternals } from "../app/server.ts";
import { loadPowertools } from "../log/load-powertools.ts";
import { closeAtShutdown } from "./short-close.ts";

/**
 * The runtime of a server: bound from the environment, once a process. It is loaded here, with the first invocation or before:
 * what a function imports is what its cold start waits for (`bundle-import` in `bench/results.json`).
 */
export async function lambdaRuntime(server: Server): Promise<Runtime> {
  const state = serverInternals(server);
  state.started = true;
  if (state.runtime !== undefined) return state.runtime;
  const [{ createLambdaRuntime }, powertools] = await Promise.all([import("./create-runtime.ts"), loadPowertools(process.env)]);
  state.runtime ??= createLambdaRuntime(server, powertools);
  return state.runtime;
}

/** The runtime for an invocation that begins. */
export async function invokedRuntime(server: Server): Promise<Runtime> {
  const runtime = await lambdaRuntime(server);
  runtime.log.refreshSampling();
  return runtime;
}

/**
 * Lets `server.ready()` be awaited before the first invocation, which alone would bind a runtime, and has the server closed
 * when the process is told to end.
 *
 * @param load - imports what the function's invocations need beside the runtime.
 */
export function prepareLambda(server: Server, load?: () => Promise<unknown>): void {
  const state = serverInternals(server);
  state.ready ??= async () => void (await (await lambdaRuntime(server)).adapters());
  preload(load);
  closeAtShutdown(state, () => lambdaRuntime(server));
}

/**
 * In Lambda what every first invocation asks for is loaded while the function starts, when it has a whole processor whatever
 * its memory. Nothing waits for it, and what fails fails again where it is needed.
 */
function preload(load: () => Promise<unknown> = async () => undefined): void {
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] === undefined) return;
  void Promise.allSettled([load(), import("./create-runtime.ts"), import("../aws/dynamodb-sdk.ts")]);
}
