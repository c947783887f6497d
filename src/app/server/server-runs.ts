import { FrameworkError } from "../../base/errors/errors.ts";
import type { LifecycleState } from "../../base/process/lifecycle.ts";
import { mergedTimes, type ShutdownTimes } from "../../base/process/shutdown-limits.ts";
import { ambientStore } from "../../base/request/ambient.ts";
import type { Tenants } from "../../parts/tenant-registry/tenant.ts";
import type { Awaitable } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { RunOptions } from "../registry/options.ts";
import { checkRunOptions, runOutside } from "../run/outside-run.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RequestScope } from "../runtime/scope.ts";
import { closeResources } from "./close-resources.ts";

interface ServerRunsOptions {
  readonly shutdown: Partial<ShutdownTimes> | undefined;
  /** Comes before the own runtime: the host's requests have to see a run's changes. */
  bound(): Promise<Runtime> | undefined;
  bindAlone(noHost: (cause?: unknown) => Error): Promise<Runtime>;
}

interface RunUnderWay {
  readonly reason: string;
  readonly controller: AbortController;
  readonly ended: Promise<unknown>;
}

/** Creates `run`, `tenants` and `close` of a server, whose hosts may have bound it. */
export function createServerRuns({ shutdown, bound, bindAlone }: ServerRunsOptions) {
  const underWay = new Set<RunUnderWay>();
  let own: Promise<Runtime> | undefined;
  let closing: Promise<void> | undefined;
  let count = 0;

  /**
   * Binds the server once, for a process without a host. `close` closes only this runtime, because
   * a host closes its own.
   */
  const alone = (): Promise<Runtime> => {
    own ??= bindAlone(noHost).catch((error: unknown) => {
      own = undefined;
      throw error;
    });
    return own;
  };

  const opened = async (): Promise<Runtime> => {
    const runtime = await (bound() ?? own ?? alone());
    assertOpen(runtime);
    return runtime;
  };

  const begin = async <Result>(
    options: RunOptions,
    work: (ctx: PipelineContext) => Awaitable<Result>,
    signal: AbortSignal,
  ): Promise<Result> => {
    const runtime = await opened();
    const running = runOutside(runtime, { options, work, ...limitsWithin(runtime, signal) });
    // Registers the run, so that a draining container waits for it and logs it if it is cut off.
    const key = `run ${++count}`;
    runtime.inFlight.set(key, {
      work: running,
      handler: "keelson.server.run",
      ids: { reason: options.reason },
    });
    try {
      return (await running) as Result; // safe: a replay returns a result of the same type
    } finally {
      runtime.inFlight.delete(key);
    }
  };

  const drain = async (): Promise<void> => {
    const { drainMs } = mergedTimes(shutdown);
    const abort = () => {
      for (const { controller } of underWay)
        controller.abort(new FrameworkError("timeout", "The server is closing"));
    };
    const late = Promise.withResolvers<void>();
    const timers = [
      setTimeout(abort, drainMs - Math.min(1_000, drainMs / 10)),
      setTimeout(late.resolve, drainMs),
    ];
    const ended = Promise.allSettled([...underWay].map((run) => run.ended));
    await Promise.race([ended, late.promise]);
    for (const timer of timers) clearTimeout(timer);
    const runtime = await own;
    if (underWay.size > 0) {
      const cut = { runs: [...underWay].map(({ reason }) => reason), count: underWay.size };
      (runtime ?? (await bound()))?.log.error("run.cut_off", cut);
    }
    own = undefined;
    if (runtime !== undefined) await closeResources(runtime, closeMs);
  };

  return {
    run: async <Result>(
      options: RunOptions,
      work: (ctx: PipelineContext) => Awaitable<Result>,
    ): Promise<Result> => {
      checkRunOptions(options);
      if (typeof work !== "function")
        throw new TypeError("server.run: the second argument is not a function; pass (ctx) => ...");
      if (closing !== undefined) throw closed();
      const controller = new AbortController();
      const ended = begin(options, work, controller.signal);
      const entry = { reason: options.reason, controller, ended };
      underWay.add(entry);
      try {
        return await ended;
      } finally {
        underWay.delete(entry);
      }
    },
    /** The tenants of the runtime that a run would use. @throws Error while the server closes. */
    tenants: async (): Promise<Tenants> => {
      if (closing !== undefined) throw closed();
      return (await import("./open-tenants.ts")).openTenants(await opened());
    },
    close: (): Promise<void> => {
      closing ??= drain().finally(() => {
        closing = undefined;
      });
      return closing;
    },
  };
}

const closedStates: readonly LifecycleState[] = ["resources-closed", "flushed"];

/** Maximum time for closing resources, in milliseconds. */
const closeMs = 10_000;

/** A run within a request or a message is part of it, and a draining host finishes both. */
function assertOpen(runtime: Runtime): void {
  const { draining, state } = runtime.lifecycle;
  const isPart = ambientStore()?.runtime === runtime;
  if (isPart ? closedStates.includes(state) : draining.aborted) throw closed();
}

/**
 * A run within a request or a message ends with it at the latest. A timer that outlives its request
 * is not bound by the limits of that request.
 */
function limitsWithin(runtime: Runtime, signal: AbortSignal) {
  const store = ambientStore();
  if (store?.runtime !== runtime) return { signal };
  // Safe: the ambient store of a runtime is a scope.
  const { deadlineMs, isHandlerOver, runSignal } = store as RequestScope;
  const isOver =
    runSignal?.aborted === true || (deadlineMs !== undefined && runtime.clock.now() >= deadlineMs);
  if (isHandlerOver && isOver) return { signal };
  const signals = runSignal === undefined ? [signal] : [signal, runSignal];
  return { deadlineMs, signal: AbortSignal.any(signals) };
}

function closed(): Error {
  return new Error("the server is closing; call server.run and server.tenants before you close it");
}

function noHost(cause?: unknown): Error {
  return new Error(
    "no host of the server runs in this process; make one, or leave keelson out of the script's bundle",
    { cause },
  );
}
