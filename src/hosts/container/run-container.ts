import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openContainerMetrics } from "../../app/metrics/metrics.ts";
import { warnOfLooseOutputs } from "../../app/registry/loose-output.ts";
import { createReadyChecks } from "../../app/routes/health.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { openTenantsInFlight } from "../../app/server/tenants-in-flight.ts";
import { errorLog } from "../../base/errors/describe.ts";
import { FrameworkError } from "../../base/errors/errors.ts";
import { needsIdentity } from "../../base/identity/access.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { createServerLogger } from "../../base/log/server-logger.ts";
import { pause } from "../../base/process/clock.ts";
import { isReloaded } from "../../base/process/environment.ts";
import { webFunctionEndpoint } from "../../base/process/platform.ts";
import { createGate } from "../container-http/gate.ts";
import {
  type ContainerWork,
  checkHttpOptions,
  type HttpServerOptions,
} from "../container-http/http-options.ts";
import { createHttpServer, type Front } from "../container-http/http-server.ts";
import { type Binding, bindAdapters } from "./adapters.ts";
import {
  type Address,
  addressOf,
  ListenError,
  listenError,
  warnOfIgnoredAddress,
} from "./address.ts";
import {
  beginLife,
  type HostProcess,
  listen,
  type ProcessLife,
  type ProcessTie,
} from "./process-life.ts";
import { shutdownTimes, warnOfPlatform } from "./shutdown-times.ts";
import { startWorkers } from "./workers.ts";
import { routesOf, worksOf } from "./works.ts";

/** Options of {@link runContainer}. */
export interface ContainerOptions extends HttpServerOptions {
  /**
   * Port to listen on; `0` picks a free one, which `server.started` logs. Default: the environment's `PORT`, otherwise 3000.
   * Ignored on a Web Function, like `host`: Lambda gives the address.
   */
  readonly port?: number;
  /** Address to listen on. Default: every address, IPv6 and IPv4. */
  readonly host?: string;
  /**
   * Work of this process: `http` serves requests, `workers` takes messages from queues and
   * dispatches the outbox, `schedules` fires schedules. Without `http`, only health and metrics are
   * served. See `docs/container.md#which-work-a-process-does`. Default: the environment's `KEELSON_RUN`, otherwise all three; on a Web Function only
   * `http`, and more fails the start.
   */
  readonly run?: readonly ContainerWork[];
}

/** Running container. */
export interface Container {
  readonly port: number;
  /**
   * Drains without a linger and closes all resources. Resolves once everything is closed; the
   * process continues, unless it receives a signal before. If the process is already shutting
   * down, waits for that shutdown: after a signal or an uncaught error, the process then exits.
   */
  close(): Promise<void>;
}

/**
 * Runs a server as a long-running process: serves its routes, consumes its messages, and drains on
 * SIGTERM or SIGINT. Resolves once it serves. If it cannot start, it logs `server.start_failed`,
 * and the process exits with code 1.
 *
 * @example
 * await runContainer(server, { port: 3000 });
 */
export function runContainer(server: Server, options: ContainerOptions = {}): Promise<Container> {
  return runContainerIn(process, server, options);
}

export async function runContainerIn(
  process: HostProcess,
  server: Server,
  options: ContainerOptions,
): Promise<Container> {
  const { env: variables } = process;
  const state = serverInternals(server);
  let runtime: Runtime | undefined;
  let life: ProcessLife | undefined;
  try {
    checkHttpOptions(options);
    const isWebFunction = webFunctionEndpoint(variables) !== undefined;
    const [address, works] = [addressOf(options, variables), worksOf(options.run, variables)];
    const binding = await bindAdapters(server, variables);
    runtime = createRuntime(server, {
      variables,
      powertools: await loadPowertools(variables),
      measuring: await openContainerMetrics(state),
      tenantsInFlight: await openTenantsInFlight(state),
      ...binding,
    });
    requireTokens(runtime, binding);
    const { shutdown } = state.options;
    life = beginLife(runtime, shutdownTimes(runtime, shutdown), isWebFunction);
    warnOfPlatform(runtime, shutdown);
    warnOfLooseOutputs(runtime);
    const tie = listen(process, runtime, life);
    state.started = true;
    const start = { server, runtime, life, options, address, works, binding, tie };
    return await (isWebFunction ? serveThenOpen(start) : openThenServe(start));
  } catch (error) {
    if (life?.isAlive() === false) return exiting();
    // A `FrameworkError` has a message for clients; its cause holds the actual reason.
    const reason = error instanceof FrameworkError ? (error.cause ?? error) : error;
    const { environment } = state;
    const report =
      runtime?.log ?? createServerLogger({ ...state.options.log, environment, env: variables });
    const { error: _code, status: _status, stack, ...reasons } = errorLog(reason).data;
    report.error(
      "server.start_failed",
      error instanceof ListenError ? reasons : { ...reasons, stack },
    );
    if (life?.server !== undefined) {
      life.tell({ type: "fault" }); // answers the requests that have come
      return exiting();
    }
    await runtime?.close().catch(() => {});
    process.exit(1);
    return exiting();
  }
}

interface Start {
  readonly server: Server;
  readonly runtime: Runtime;
  readonly life: ProcessLife;
  readonly options: ContainerOptions;
  readonly address: Address;
  readonly works: ReadonlySet<ContainerWork>;
  readonly binding: Binding;
  readonly tie: ProcessTie;
}

async function openThenServe(start: Start): Promise<Container> {
  const { server, runtime, life, works } = start;
  await server.ready();
  await runtime.adapters.open();
  if (!life.isAlive()) return exiting();
  // Listens first: a process whose port is taken must not take a message that it cannot finish.
  const port = await serve(start, { routes: routesOf(runtime, works) });
  // A process is ready once its workers have started. A reloaded one does not wait for them, because
  // a developer waits for the first response.
  const isQuick = isReloaded(runtime);
  if (!isQuick && !(await hasWorkers(start))) return exiting();
  reportStarted(start, port, "container");
  if (isQuick) {
    await sleep(quickMs);
    if (!life.isAlive() || !(await hasWorkers(start))) return exiting();
  }
  return containerOf(start, port);
}

/**
 * Starts a Web Function. Lambda expects it to listen within 10 s and sends requests immediately,
 * so they wait at a gate until the server is ready.
 */
async function serveThenOpen(start: Start): Promise<Container> {
  const { server, runtime, life, options, address } = start;
  const gate = createGate();
  runtime.lifecycle.draining.addEventListener("abort", gate.fail);
  warnOfIgnoredAddress(runtime.log, options, runtime.variables, address);
  const port = await serve(start, { gate, isWebFunction: true });
  await server.ready();
  await runtime.adapters.open();
  await checksPass(runtime);
  if (!life.isAlive()) return exiting();
  gate.open();
  reportStarted(start, port, "web-function");
  return containerOf(start, port);
}

/** Resolves once all ready checks pass, or the process stops. */
async function checksPass(runtime: Runtime): Promise<void> {
  const check = createReadyChecks(runtime);
  const { draining } = runtime.lifecycle;
  while (!draining.aborted) {
    const results = await check(runtime.log);
    if (!Object.values(results).includes("failing")) return;
    await pause(checkAgainMs, draining);
  }
}

const checkAgainMs = 1_000;

/** Listens, and returns the port. */
async function serve(
  { runtime, life, options, works, address: { port, host } }: Start,
  front: Front,
): Promise<number> {
  const { upgrade: _upgrade, ...withoutUpgrade } = options;
  const given = works.has("http") ? options : withoutUpgrade;
  const container = createHttpServer(runtime, given, front);
  const { http } = container;
  http.listen(port, host);
  await once(http, "listening").catch((error: unknown) => {
    throw listenError(error, port);
  });
  life.server = container;
  // Safe: the server listens on a port, not on a pipe.
  return (http.address() as AddressInfo).port;
}

function reportStarted(
  { runtime, life, options, binding }: Start,
  port: number,
  host: "container" | "web-function",
): void {
  life.tell({ type: "started" });
  runtime.log.info("server.started", {
    host,
    url: `${options.tls === undefined ? "http" : "https"}://localhost:${port}`,
    port,
    environment: runtime.environment,
    adapters: binding.adapters,
  });
}

function containerOf({ life, tie }: Start, port: number): Container {
  return {
    port,
    close: async () => {
      if (life.isAlive()) {
        tie.isCallers = true;
        life.tell({ type: "terminate", skipsLinger: true });
      }
      await life.ended;
      tie.ignore();
    },
  };
}

/** Starts the workers. Stops them and returns `false` if the process was stopped in the meantime. */
async function hasWorkers({ runtime, life, works }: Start): Promise<boolean> {
  life.workers = await startWorkers(runtime, works);
  if (life.isAlive()) return true;
  life.workers.stop();
  return false;
}

/** Never resolves: the process exits once its resources are closed. */
function exiting(): Promise<never> {
  return new Promise(() => {});
}

/**
 * Time in which a reloaded process only serves requests, in milliseconds, because loading the queue
 * clients would block its first responses.
 */
const quickMs = 250;

/** @throws Error if a handler needs an identity but the server cannot verify tokens. */
export function requireTokens(
  runtime: Pick<Runtime, "server" | "verifiesTokens">,
  { developmentSecret }: Binding,
): void {
  const needy = [...runtime.server.registry.handlers.values()].find(
    ({ access }) => access !== undefined && needsIdentity(access),
  );
  if (!runtime.verifiesTokens && developmentSecret === undefined && needy !== undefined) {
    throw new Error(
      `${needy.name} requires an identified caller, but the server cannot verify tokens; set KEELSON_AUTH_SECRET, or \`auth\` in buildServer; or NODE_ENV=development, which has its own secret`,
    );
  }
}
