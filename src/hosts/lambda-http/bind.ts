import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { eventFunctionName } from "../../base/process/platform.ts";
import type { createLambdaRuntime, openMeasuring } from "./lambda-runtime.ts";

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
 * initialization, when the function has a whole processor regardless of its memory. No code awaits
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
  const bind = async () => (await invoked.open()).runtime;
  state.bound ??= bind;
  state.ready ??= async () => void (await (await bind()).adapters.open());
  if (eventFunctionName(process.env) !== undefined) {
    void loading
      .open()
      .then(({ loadSdk }) => loadSdk(state, name))
      .catch(() => undefined);
    closeAtShutdown(state, bind);
  }
  return invoked;
}

const owners = Symbol.for("keelson.short-close");

type Bind = () => Promise<Pick<Runtime, "server" | "lifecycle" | "log" | "metrics" | "close">>;

type ShortClose = (() => void) & { readonly [owners]: Map<object, Bind> };

/**
 * Closes the resources of `owner` on SIGTERM, which Lambda sends if an extension is registered. The
 * process's one listener holds all owners, so that no module has state.
 */
function closeAtShutdown(owner: object, bind: Bind): void {
  const known = process.listeners("SIGTERM").find((listener) => owners in listener) as
    | ShortClose
    | undefined; // safe: only `shortClose` sets the symbol
  const listener = known ?? shortClose();
  listener[owners].set(owner, bind);
  if (known === undefined) process.on("SIGTERM", listener);
}

function shortClose(): ShortClose {
  const owned = new Map<object, Bind>();
  let isClosing = false;
  const close = () => {
    if (isClosing) return;
    isClosing = true;
    void Promise.allSettled([...owned.values()].map(closeOne)).then(() => process.exit(0));
  };
  return Object.assign(close, { [owners]: owned });
}

/**
 * Time limit for the whole cleanup, in milliseconds. If Lambda sends SIGTERM at all, it kills the
 * process 300 to 500 ms later.
 */
const limitMs = 250;

/** Closes one runtime. No work is in flight between two invocations, so none is drained. */
async function closeOne(bind: Bind): Promise<void> {
  const startMs = performance.now();
  const runtime = await bind();
  runtime.lifecycle.drain();
  const { closeResources } = await import("../../app/server/close-resources.ts");
  const clean = await closeResources(runtime, limitMs);
  runtime.metrics?.record("keelson.drains", 1, { "keelson.outcome": clean ? "clean" : "lossy" });
  runtime.metrics?.flush?.();
  runtime.log.info("shutdown.completed", {
    clean,
    exitCode: 0,
    totalMs: Math.round(performance.now() - startMs),
  });
}

/** Describes a function for tools that check how it is deployed. */
export interface FunctionMark {
  /** Such as `http` for `lambdaHttp`. */
  readonly kind: string;
  /** The only handler that the function calls, for `lambdaHandler`. */
  readonly handler?: string;
  /** Whether the function streams its responses, if its front does. */
  readonly stream?: true;
}

/** Global symbol, because a bundle contains its own copy of keelson. */
const mark = Symbol.for("keelson.function");

export function marked<Made extends object>(made: Made, saying: FunctionMark): Made {
  return Object.assign(made, { [mark]: saying });
}

/** Returns `undefined` for any other function, such as one that wraps a keelson function. */
export function markOf(made: object): FunctionMark | undefined {
  return (made as { readonly [mark]?: FunctionMark })[mark]; // safe: only `marked` sets this
}
