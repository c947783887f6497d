/* v8 ignore file -- it ends its process: test/integration/container.system.test.ts runs it as one of its own */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openContainerMetrics } from "../../app/metrics/metrics.ts";
import { warnOfLooseOutputs } from "../../app/runtime/loose-outputs.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { describeError } from "../../base/errors/describe.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { needsIdentity } from "../../base/identity/access.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { createServerLogger } from "../../base/log/server-logger.ts";
import { isReloaded, type Variables } from "../../base/process/environment.ts";
import { defaultTimes, platformMs, type ShutdownTimes } from "../../base/process/times.ts";
import { checkHttpOptions, type HttpServerOptions } from "../container-http/http-options.ts";
import { createHttpServer } from "../container-http/http-server.ts";
import { type Binding, bindAdapters } from "./adapters.ts";
import { ListenError, listenError } from "./listen-error.ts";
import { beginLife, type ProcessLife, thrown } from "./process-life.ts";
import { startWorkers } from "./workers.ts";

/** Options of {@link runContainer}. */
export interface ContainerOptions extends HttpServerOptions {
  /** Default: the environment's `PORT`, otherwise 3000. `0` picks a free port. */
  readonly port?: number;
  /** Default: every address, IPv6 and IPv4. */
  readonly host?: string;
}

/** A running container. */
export interface Container {
  readonly port: number;
  /** Drains without a linger and closes everything; resolves when nothing is left open. The process goes on. */
  close(): Promise<void>;
}

/**
 * Runs a server as a long-running process: serves its routes, consumes its messages, and drains on SIGTERM or SIGINT.
 * Resolves once it serves. If it cannot start, it logs `server.start_failed` and the process exits with 1.
 *
 * @example
 * await runContainer(server, { port: 3000 });
 */
export async function runContainer(
  server: Server,
  options: ContainerOptions = {},
): Promise<Container> {
  const variables = process.env;
  const state = serverInternals(server);
  let runtime: Runtime | undefined;
  let life: ProcessLife | undefined;
  try {
    checkHttpOptions(options);
    const port = portOf(options, variables);
    const binding = await bindAdapters(server, variables);
    const [powertools, measuring] = [
      await loadPowertools(variables),
      await openContainerMetrics(state),
    ];
    runtime = createRuntime(server, { variables, powertools, measuring, ...binding });
    requireTokens(runtime, binding);
    life = beginLife(runtime, shutdownTimes(runtime, state.options.shutdown));
    warnOfPlatform(runtime, state.options.shutdown);
    warnOfLooseOutputs(runtime);
    const ignore = listen(runtime, life);
    const end: End = { isCallers: false, ignore };
    void life.ended.then((code) => {
      if (!end.isCallers) process.exit(code);
    });
    state.started = true;
    await server.ready();
    await runtime.adapters();
    return await start(runtime, life, { ...options, port }, binding, end);
  } catch (error) {
    if (life?.isAlive() === false) return exiting();
    // What a client would be told says less than why.
    const reason = error instanceof FrameworkError ? (error.cause ?? error) : error;
    const { log } = describeError(reason, { requestId: "", environment: state.environment });
    const { environment } = state;
    const report =
      runtime?.log ?? createServerLogger({ ...state.options.log, environment, env: variables });
    const { error: _code, status: _status, stack, ...reasons } = log.data;
    report.error(
      "server.start_failed",
      error instanceof ListenError ? reasons : { ...reasons, stack },
    );
    await runtime?.close().catch(() => {});
    process.exit(1);
  }
}

async function start(
  runtime: Runtime,
  life: ProcessLife,
  options: ContainerOptions & { readonly port: number },
  binding: Binding,
  end: End,
): Promise<Container> {
  if (!life.isAlive()) return exiting();
  // Who waits for a changed source to run waits for answers first; elsewhere what is ready does all of its work.
  const isQuick = isReloaded(runtime);
  if (!isQuick && !(await hasWorkers(runtime, life))) return exiting();
  const container = createHttpServer(runtime, options);
  const { http } = container;
  http.listen(options.port, options.host);
  await once(http, "listening").catch((error: unknown) => {
    throw listenError(error, options.port);
  });
  life.server = container;
  const { port } = http.address() as AddressInfo; // safe: it listens on a port, not on a pipe
  life.tell({ type: "started" });
  runtime.log.info("server.started", {
    url: `${options.tls === undefined ? "http" : "https"}://localhost:${port}`,
    port,
    environment: runtime.environment,
    adapters: binding.adapters,
  });
  if (isQuick) {
    await sleep(quickMs);
    if (!life.isAlive() || !(await hasWorkers(runtime, life))) return exiting();
  }
  return {
    port,
    close: async () => {
      end.isCallers = true;
      life.tell({ type: "terminate", skipsLinger: true });
      await life.ended;
      end.ignore();
    },
  };
}

/** Starts the workers; `false` where the process was told to stop in between, when they were not there to be told. */
async function hasWorkers(runtime: Runtime, life: ProcessLife): Promise<boolean> {
  life.workers = await startWorkers(runtime);
  if (life.isAlive()) return true;
  life.workers.stop();
  return false;
}

/** How the process ends. */
interface End {
  /** Whether it goes on once the container is closed, because its caller has closed it. */
  isCallers: boolean;
  /** Hears signals no more. */
  readonly ignore: () => void;
}

/** A process that was told to stop before it served: it exits as soon as what it has opened is closed. */
function exiting(): Promise<never> {
  return new Promise(() => {});
}

const sameSignalMs = 200;
/** How long a process that was started anew answers only, in milliseconds: loading the queues' clients would keep it from that. */
const quickMs = 250;

/** Listens to the process's signals and uncaught errors. The returned function stops it. */
function listen(runtime: Runtime, life: ProcessLife): () => void {
  let lastAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    // npm hands on what a terminal has sent to the whole group: that is one signal, not two.
    if (performance.now() - lastAt <= sameSignalMs) return;
    lastAt = performance.now();
    count += 1;
    runtime.log.info(count === 1 ? "shutdown.started" : "shutdown.hurried", { signal });
    life.tell({
      type: "terminate",
      skipsLinger: signal === "SIGINT" && runtime.environment === "development",
    });
  };
  const onFault = (msg: string) => (error: unknown) => {
    runtime.log.error(msg, thrown(error));
    life.tell({ type: "fault" });
  };
  const listeners = {
    SIGTERM: onSignal,
    SIGINT: onSignal,
    uncaughtException: onFault("process.uncaught_exception"),
    unhandledRejection: onFault("process.unhandled_rejection"),
  };
  for (const [name, listener] of Object.entries(listeners)) process.on(name, listener);
  return () => {
    for (const [name, listener] of Object.entries(listeners)) process.off(name, listener);
  };
}

/** The times of a shutdown: who waits for a changed source to run has no load balancer that has to take notice. */
function shutdownTimes(runtime: Runtime, given: Partial<ShutdownTimes> = {}): ShutdownTimes {
  const times = { ...defaultTimes, ...given };
  return isReloaded(runtime) ? { ...times, lingerMs: 0 } : times;
}

/** Most platforms kill earlier than the defaults end: who deploys has to know. */
function warnOfPlatform(runtime: Runtime, given: Partial<ShutdownTimes> = {}): void {
  const { totalMs } = { ...defaultTimes, ...given };
  if (runtime.environment !== "production" || totalMs <= platformMs) return;
  const least = Math.ceil(totalMs / 1_000);
  runtime.log.warn("shutdown.platform_limit", {
    totalMs,
    fix: `set terminationGracePeriodSeconds (Kubernetes) or stopTimeout (ECS) to more than ${least} seconds; their default is 30`,
  });
}

function portOf({ port }: ContainerOptions, variables: Variables): number {
  const given =
    port ??
    (variables["PORT"] === undefined || variables["PORT"] === ""
      ? 3000
      : Number(variables["PORT"]));
  if (!Number.isInteger(given) || given < 0 || given > 65_535) {
    throw new Error(
      `PORT: ${JSON.stringify(port ?? variables["PORT"])} is not a port; set a number from 0 to 65535`,
    );
  }
  return given;
}

/** A production server whose routes need an identity, and nothing to verify one with, must not start. */
function requireTokens(runtime: Runtime, { developmentSecret }: Binding): void {
  const needy = [...runtime.server.registry.handlers.values()].find(
    ({ access }) => access !== undefined && needsIdentity(access),
  );
  if (!runtime.verifiesTokens && developmentSecret === undefined && needy !== undefined) {
    throw new Error(
      `${needy.name} needs to know who calls, and nothing can verify a token; set KEELSON_AUTH_SECRET, or \`auth\` in buildServer; or NODE_ENV=development, which has a secret of its own`,
    );
  }
}
