import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import type { createLambdaRuntime, openMeasuring } from "./lambda-runtime.ts";
import { closeAtShutdown } from "./short-close.ts";

/** What invocations of a function need, in one module. */
export interface InvocationModule {
  readonly createLambdaRuntime: typeof createLambdaRuntime;
  readonly openMeasuring: typeof openMeasuring;
  /** Loads the SDK, where the first invocation is going to need it. */
  loadSdk(server: DeclaredServer, name?: string): Promise<unknown> | undefined;
}

/** What an invocation runs on. */
export interface Invoked<Loaded> {
  readonly loaded: Loaded;
  /** Bound from the environment, once a process. */
  readonly runtime: Runtime;
}

/**
 * Prepares a server for a function: `server.ready()` can be awaited before the first invocation, and the server is closed when
 * the process is told to end.
 *
 * @param load - imports what invocations need. It is loaded with the first of them: what a function imports is what its cold
 * start waits for (`bundle-import` in `bench/results.json`). In Lambda it is asked for while the function still starts, when it
 * has a whole processor whatever its memory; nothing waits for it then, and what fails fails again where it is needed.
 * @param name - the handler that alone is called; default: any.
 * @returns what an invocation runs on, made for the first.
 */
export function prepareLambda<Loaded extends InvocationModule>(
  server: Server,
  load: () => Promise<Loaded>,
  name?: string,
): Lazy<Invoked<Loaded>> {
  const state = serverInternals(server);
  const loading = lazy(load);
  const invoked = lazy(async () => {
    state.started = true;
    const loaded = await loading.open();
    if (state.runtime === undefined) {
      const powertools = await loadPowertools(process.env);
      const measuring = await loaded.openMeasuring(state);
      state.runtime ??= loaded.createLambdaRuntime(server, powertools, measuring);
    }
    return { loaded, runtime: state.runtime };
  });
  state.bound ??= async () => (await invoked.open()).runtime;
  state.ready ??= async () => void (await (await invoked.open()).runtime.adapters());
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] !== undefined) {
    void loading
      .open()
      .then(({ loadSdk }) => loadSdk(state, name))
      .catch(() => undefined);
  }
  closeAtShutdown(state, async () => (await invoked.open()).runtime);
  return invoked;
}
