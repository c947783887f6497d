import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { loadPowertools } from "../../base/log/log-threshold.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import type { createLambdaRuntime, openMeasuring } from "./lambda-runtime.ts";
import { closeAtShutdown } from "./short-close.ts";

export interface InvocationModule {
  readonly createLambdaRuntime: typeof createLambdaRuntime;
  readonly openMeasuring: typeof openMeasuring;
  /** Loads the AWS SDK if the first invocation will need it. */
  loadSdk(server: DeclaredServer, name?: string): Promise<unknown> | undefined;
}

export interface Invoked<Loaded> {
  readonly loaded: Loaded;
  /** Runtime, created from the environment once per process. */
  readonly runtime: Runtime;
}

/**
 * Prepares a server for a function: `server.ready()` can be awaited before the first invocation,
 * and SIGTERM closes the server.
 *
 * @param load - imports the module that invocations need; a static import would prolong the cold
 * start (`bundle-import` in `bench/results.json`). In Lambda, the import starts during
 * initialization, when the function has a whole processor regardless of its memory. Nothing awaits
 * it there; after a failure, the first invocation imports again.
 * @param name - the only handler that the function calls; default: any.
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
  state.ready ??= async () => void (await (await invoked.open()).runtime.adapters.open());
  if (process.env["AWS_LAMBDA_FUNCTION_NAME"] !== undefined) {
    void loading
      .open()
      .then(({ loadSdk }) => loadSdk(state, name))
      .catch(() => undefined);
  }
  closeAtShutdown(state, async () => (await invoked.open()).runtime);
  return invoked;
}
