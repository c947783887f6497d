/* v8 ignore file -- it ends its process: test/integration/container.test.ts runs it as one of its own */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Variables } from "../app/environment.ts";
import { createRuntime, type Runtime } from "../app/runtime.ts";
import { type Server, serverInternals } from "../app/server.ts";
import { describeError } from "../errors/describe.ts";
import { FrameworkError } from "../errors/errors.ts";
import { needsIdentity } from "../identity/access.ts";
import { type Binding, bindAdapters } from "./adapters.ts";
import { createHttpServer, type HttpServerOptions } from "./http-server.ts";
import { closeResources, drain, finish, shutdownTimes } from "./shutdown.ts";
import { startWorkers } from "./workers.ts";

/** How a container runs. */
export interface ContainerOptions extends HttpServerOptions {
  /** Default: the environment's `PORT`, otherwise 3000. `0` takes a free one. */
  readonly port?: number;
  /** Default: every address, IPv6 and IPv4. */
  readonly host?: string;
}

/** A container that serves. */
export interface Container {
  readonly port: number;
  /** Drains and closes everything; resolves when nothing is left open. */
  close(): Promise<void>;
}

/**
 * Runs a server as a long-running process: serves its routes, and drains on SIGTERM.
 * Exits with 1 where it cannot start.
 *
 * @example
 * await runContainer(server, { port: 3000 });
 */
export async function runContainer(server: Server, options: ContainerOptions = {}): Promise<Container> {
  const variables = process.env;
  const state = serverInternals(server);
  let runtime: Runtime | undefined;
  try {
    const port = portOf(options, variables);
    const binding = await bindAdapters(server, variables);
    runtime = createRuntime(server, { variables, ...binding });
    requireTokens(runtime, binding);
    state.started = true;
    await server.ready();
    await runtime.adapters();
    return await start(runtime, { ...options, port }, binding);
  } catch (error) {
    // What a client would be told says less than why.
    const reason = error instanceof FrameworkError ? (error.cause ?? error) : error;
    const { log } = describeError(reason, { requestId: "", environment: state.environment });
    const report = runtime?.log ?? createRuntime(server, { variables, openAdapters: () => Promise.reject(error) }).log;
    const { error: _code, status: _status, ...reasons } = log.data;
    report.error("server.start_failed", reasons);
    await runtime?.close().catch(() => {});
    process.exit(1);
  }
}

async function start(
  runtime: Runtime,
  options: ContainerOptions & { readonly port: number },
  binding: Binding,
): Promise<Container> {
  const workers = await startWorkers(runtime);
  const container = createHttpServer(runtime, options);
  const { http } = container;
  http.listen(options.port, options.host);
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe: it listens on a port, not on a pipe
  runtime.log.info("server.started", {
    url: `http://localhost:${port}`,
    port,
    environment: runtime.environment,
    adapters: binding.adapters,
  });

  let closing: Promise<boolean> | undefined;
  const close = (skipLinger: boolean) => {
    closing ??= (async () => {
      workers.stop();
      const isDrained = await drain(runtime, container, skipLinger ? { ...shutdownTimes, lingerMs: 0 } : shutdownTimes);
      const areDone = await finish(runtime, workers);
      return (await closeResources(runtime)) && isDrained && areDone;
    })();
    return closing;
  };
  const ignoreSignals = onSignals(runtime, close);
  return {
    port,
    close: async () => {
      await close(true);
      ignoreSignals();
    },
  };
}

const sameSignalMs = 200;

/**
 * SIGTERM drains, SIGINT too, without the linger in development; a second signal ends at once.
 * Returns what stops listening to them.
 */
function onSignals(runtime: Runtime, close: (skipLinger: boolean) => Promise<boolean>): () => void {
  let firstAt: number | undefined;
  const onSignal = async (signal: NodeJS.Signals) => {
    if (firstAt !== undefined) {
      // npm hands on what a terminal has sent to the whole group: that is one signal, not two.
      if (performance.now() - firstAt > sameSignalMs) process.exit(1);
      return;
    }
    firstAt = performance.now();
    runtime.log.info("shutdown.started", { signal });
    const isClean = await close(signal === "SIGINT" && runtime.environment === "development");
    runtime.log.info("shutdown.completed", { clean: isClean });
    process.exit(isClean ? 0 : 1);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return () => {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  };
}

function portOf({ port }: ContainerOptions, variables: Variables): number {
  const given = port ?? (variables["PORT"] === undefined || variables["PORT"] === "" ? 3000 : Number(variables["PORT"]));
  if (!Number.isInteger(given) || given < 0 || given > 65_535) {
    throw new Error(`PORT: ${JSON.stringify(port ?? variables["PORT"])} is not a port; set a number from 0 to 65535`);
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
