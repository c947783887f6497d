import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openContainerMetrics } from "../../app/metrics/metrics.ts";
import { warnOfLooseOutputs } from "../../app/registry/loose-output.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import { errorLog } from "../../base/errors/describe.ts";
import { FrameworkError, systemCode } from "../../base/errors/errors.ts";
import { needsIdentity } from "../../base/identity/access.ts";
import { loadPowertools } from "../../base/log/load-powertools.ts";
import { createServerLogger } from "../../base/log/server-logger.ts";
import { isReloaded, type Variables } from "../../base/process/environment.ts";
import { defaultTimes, platformMs, type ShutdownTimes } from "../../base/process/lifecycle.ts";
import { checkHttpOptions, type HttpServerOptions } from "../container-http/http-options.ts";
import { createHttpServer } from "../container-http/http-server.ts";
import { type Binding, bindAdapters } from "./adapters.ts";
import {
  beginLife,
  type HostProcess,
  listen,
  type ProcessLife,
  type ProcessTie,
} from "./process-life.ts";
import { startWorkers } from "./workers.ts";

/** Options of {@link runContainer}. */
export interface ContainerOptions extends HttpServerOptions {
  /** Port to listen on; `0` picks a free one. Default: the environment's `PORT`, otherwise 3000. */
  readonly port?: number;
  /** Address to listen on. Default: every address, IPv6 and IPv4. */
  readonly host?: string;
}

/** Running container. */
export interface Container {
  readonly port: number;
  /**
   * Drains without a linger and closes all resources. Resolves once everything is closed; the
   * process continues.
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
    const port = portOf(options.port, variables);
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
    const tie = listen(process, runtime, life);
    state.started = true;
    await server.ready();
    await runtime.adapters.open();
    return await start(runtime, life, { ...options, port }, binding, tie);
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
    await runtime?.close().catch(() => {});
    process.exit(1);
    return exiting();
  }
}

async function start(
  runtime: Runtime,
  life: ProcessLife,
  options: ContainerOptions & { readonly port: number },
  binding: Binding,
  tie: ProcessTie,
): Promise<Container> {
  if (!life.isAlive()) return exiting();
  // A reloaded process serves first, because a developer waits for the first response. Any other
  // process starts its workers before it is ready.
  const isQuick = isReloaded(runtime);
  if (!isQuick && !(await hasWorkers(runtime, life))) return exiting();
  const container = createHttpServer(runtime, options);
  const { http } = container;
  http.listen(options.port, options.host);
  await once(http, "listening").catch((error: unknown) => {
    throw listenError(error, options.port);
  });
  life.server = container;
  // Safe: the server listens on a port, not on a pipe.
  const { port } = http.address() as AddressInfo;
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
      tie.isCallers = true;
      life.tell({ type: "terminate", skipsLinger: true });
      await life.ended;
      tie.ignore();
    },
  };
}

/** Starts the workers. Stops them and returns `false` if the process was stopped meanwhile. */
async function hasWorkers(runtime: Runtime, life: ProcessLife): Promise<boolean> {
  life.workers = await startWorkers(runtime);
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

/** A process that restarts on source changes has no load balancer to notify, so no linger. */
export function shutdownTimes(
  runtime: Pick<Runtime, "environment" | "variables">,
  given: Partial<ShutdownTimes> = {},
): ShutdownTimes {
  const times = { ...defaultTimes, ...given };
  return isReloaded(runtime) ? { ...times, lingerMs: 0 } : times;
}

export function warnOfPlatform(
  runtime: Pick<Runtime, "environment" | "log">,
  given: Partial<ShutdownTimes> = {},
): void {
  const { totalMs } = { ...defaultTimes, ...given };
  if (runtime.environment !== "production" || totalMs <= platformMs) return;
  const least = Math.ceil(totalMs / 1_000);
  runtime.log.warn("shutdown.platform_limit", {
    totalMs,
    fix: `set terminationGracePeriodSeconds (Kubernetes) or stopTimeout (ECS) to more than ${least} seconds; their default is 30`,
  });
}

export function portOf(port: number | undefined, variables: Variables): number {
  const given = port ?? (variables["PORT"] || 3000);
  const number = Number(given);
  if (!Number.isInteger(number) || number < 0 || number > 65_535)
    throw new Error(`PORT: ${JSON.stringify(given)} is not a port; set a number from 0 to 65535`);
  return number;
}

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
      `${needy.name} needs to know who calls, and nothing can verify a token; set KEELSON_AUTH_SECRET, or \`auth\` in buildServer; or NODE_ENV=development, which has a secret of its own`,
    );
  }
}

/** Error whose message is complete, so that its stack is not logged. */
export class ListenError extends Error {}

export function listenError(error: unknown, port: number): unknown {
  const reason = reasons.get(systemCode(error));
  return reason === undefined ? error : new ListenError(`Port ${port} ${reason}`);
}

const reasons: ReadonlyMap<unknown, string> = new Map([
  ["EADDRINUSE", "is in use: stop the process that listens on it, or set PORT to another one"],
  ["EACCES", "may not be used by this user: set PORT to one above 1023"],
]);
