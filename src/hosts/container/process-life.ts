import type { Runtime } from "../../app/runtime/runtime.ts";
import { closeResources } from "../../app/server/close-resources.ts";
import { errorLog } from "../../base/errors/describe.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import {
  type Lifecycle,
  type LifecycleAction,
  type LifecycleEvent,
  nextDue,
  type ShutdownPhase,
  startingLifecycle,
  step,
} from "../../base/process/lifecycle.ts";
import type { ShutdownTimes } from "../../base/process/shutdown-limits.ts";
import { mostNamed } from "../container-http/drain.ts";
import type { ContainerServer } from "../container-http/http-server.ts";
import type { Workers } from "./workers.ts";

export interface ProcessLife {
  server: ContainerServer | undefined;
  workers: Workers | undefined;
  tell(event: LifecycleEvent): void;
  isAlive(): boolean;
  /** Resolves to the exit code once the shutdown is complete. */
  readonly ended: Promise<0 | 1>;
}

const mostFlushMs = 1_000;

export function beginLife(
  runtime: Pick<
    Runtime,
    "server" | "environment" | "log" | "lifecycle" | "inFlight" | "metrics" | "close"
  >,
  times: ShutdownTimes,
  mayLeaveOpen = false,
): ProcessLife {
  const { log } = runtime;
  let lifecycle: Lifecycle = startingLifecycle(times, nowMs(), mayLeaveOpen);
  let timer: NodeJS.Timeout | undefined;
  let dueMs = 0;
  let cutRequestIds: readonly string[] = [];
  let cutMessages: readonly object[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<0 | 1>();

  const tell = (event: LifecycleEvent) => {
    const { lifecycle: after, actions } = step(lifecycle, event, nowMs());
    lifecycle = after;
    const due = nextDue(after);
    runtime.lifecycle.enter(after.state);
    clearTimeout(timer);
    if (due !== undefined) {
      dueMs = due;
      timer = setTimeout(() => tell({ type: "time" }), leftMs());
    }
    for (const action of actions) perform[action]();
  };
  const leftMs = () => Math.max(0, dueMs - nowMs());
  const done = (phase: ShutdownPhase, clean = true) => tell({ type: "done", phase, clean });

  const perform: Readonly<Record<LifecycleAction, () => void>> = {
    drain: () => {
      runtime.lifecycle.drain();
      life.workers?.stop();
    },
    "close-listener": () => {
      const { server } = life;
      if (server === undefined || !server.http.listening) return done("in-flight-drain");
      server.drain.close(() => done("in-flight-drain"));
    },
    "abort-requests": () => {
      life.server?.drain.abort(new FrameworkError("timeout", "The service is shutting down"));
    },
    "cut-requests": () => {
      const none = { requests: [], requestIds: [], count: 0, upgraded: 0 };
      const underWay = life.server?.drain.underWay() ?? none;
      cutRequestIds = underWay.requestIds;
      log.error("shutdown.requests_cut_off", underWay);
      life.server?.drain.cut();
    },
    "finish-workers": () => {
      // Each run logs its own failure.
      const runs = Promise.allSettled([...runtime.inFlight.values()].map(({ work }) => work));
      void Promise.all([life.workers?.finished(), runs]).then(() => done("workers-stopped"));
    },
    "cut-workers": () => {
      const messages = [...runtime.inFlight.values()].map(({ handler, ids }) => ({
        handler,
        ...ids,
      }));
      cutMessages = messages.slice(0, mostNamed);
      log.error("shutdown.workers_cut_off", { messages: cutMessages, count: messages.length });
    },
    "close-resources": () => {
      const closing = closeResources(runtime, leftMs(), { keepsMetrics: true }); // for the flush
      void closing.then((clean) => done("resources-closed", clean));
    },
    "cut-resources": () => log.error("shutdown.resources_cut_off"),
    flush: () => {
      log.info("shutdown.completed", {
        ...record(lifecycle),
        ...(cutRequestIds.length > 0 ? { cutOffRequestIds: cutRequestIds } : {}),
        ...(cutMessages.length > 0 ? { cutOffMessages: cutMessages } : {}),
      });
      runtime.metrics?.record("keelson.drains", 1, {
        "keelson.outcome": lifecycle.exitCode === 0 ? "clean" : "lossy",
      });
      // Log lines are written synchronously, so only tracers and meters may need a flush.
      if (!(telemetry in globalThis)) return done("flushed");
      void flushTelemetry(Math.min(mostFlushMs, leftMs() / 2)).then(() => done("flushed"));
    },
    exit: () => {
      clearTimeout(timer);
      end(lifecycle.exitCode);
      runtime.metrics?.close?.();
    },
  };

  const life: ProcessLife = {
    server: undefined,
    workers: undefined,
    tell,
    isAlive: () => lifecycle.state === "starting" || lifecycle.state === "running",
    ended,
  };
  return life;
}

/** Whole milliseconds of a clock that never steps. */
function nowMs(): number {
  return Math.floor(performance.now());
}

const phases: readonly ShutdownPhase[] = [
  "draining",
  "in-flight-drain",
  "workers-stopped",
  "resources-closed",
  "flushed",
];

function record({ entered, cutOff, exitCode, signals }: Lifecycle) {
  // Safe: every phase has a time, because the record is written at the end.
  const times = phases.map((phase) => entered[phase] as number);
  const phaseMs = Object.fromEntries(
    times
      .slice(1)
      .map((endMs, index) => [phases[index] as ShutdownPhase, endMs - (times[index] as number)]),
  );
  const totalMs = (times.at(-1) as number) - (times[0] as number);
  return { clean: exitCode === 0, exitCode, signals, phaseMs, totalMs, cutOff };
}

/** OpenTelemetry provider that buffers spans or metrics, or a proxy of one. */
interface Provider {
  forceFlush?(): Promise<void>;
  getDelegate?(): Provider;
}

/**
 * Global under which the OpenTelemetry API registers its providers. Without it, no flush is needed.
 */
const telemetry = Symbol.for("opentelemetry.js.api.1");

/**
 * Flushes the OpenTelemetry SDK, which exports only at intervals, for at most `limitMs`
 * milliseconds. Never rejects.
 */
function flushTelemetry(limitMs: number): Promise<unknown> {
  // Safe: only version 1 of the OpenTelemetry API sets this key, and it sets this shape.
  const { [telemetry]: api } = globalThis as {
    readonly [key: symbol]: { readonly metrics?: Provider; readonly trace?: Provider } | undefined;
  };
  const flushes = [api?.metrics, api?.trace].flatMap((registered) => {
    const provider = registered?.getDelegate?.() ?? registered;
    // Asynchronous, so that a throw becomes a rejection.
    return provider === undefined ? [] : [(async () => provider.forceFlush?.())()];
  });
  const { promise: done, resolve } = Promise.withResolvers<unknown>();
  const timer = setTimeout(resolve, limitMs);
  void Promise.allSettled(flushes).then(resolve);
  return done.finally(() => clearTimeout(timer));
}

export interface HostProcess extends Pick<NodeJS.EventEmitter, "on" | "off"> {
  readonly env: NodeJS.ProcessEnv;
  exit(code: number): void;
}

/** Time in which two signals count as one, in milliseconds. */
const sameSignalMs = 200;

export type ProcessTie = ReturnType<typeof listen>;

export function listen(
  process: HostProcess,
  { log, environment }: Pick<Runtime, "log" | "environment">,
  life: Pick<ProcessLife, "tell" | "ended">,
) {
  let lastAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    // npm forwards a signal that the terminal has already sent to the whole process group.
    if (performance.now() - lastAt <= sameSignalMs) return;
    lastAt = performance.now();
    count += 1;
    log.info(count === 1 ? "shutdown.started" : "shutdown.hurried", { signal });
    if (tie.isCallers) {
      // The first signal joins a shutdown that the caller has started.
      tie.isCallers = false;
      return;
    }
    life.tell({
      type: "terminate",
      skipsLinger: signal === "SIGINT" && environment === "development",
    });
  };
  const onFault = (msg: string) => (error: unknown) => {
    log.error(msg, errorLog(error).data);
    life.tell({ type: "fault" });
  };
  const listeners = {
    SIGTERM: onSignal,
    SIGINT: onSignal,
    uncaughtException: onFault("process.uncaught_exception"),
    unhandledRejection: onFault("process.unhandled_rejection"),
  };
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener);
  const tie = {
    /** Whether only the caller has closed the container, so that the process continues. */
    isCallers: false,
    ignore: () => {
      for (const [name, listener] of Object.entries(listeners)) process.off(name, listener);
    },
  };
  void life.ended.then((code) => {
    if (!tie.isCallers) process.exit(code);
  });
  return tie;
}
