import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { openContainerMetrics } from "../../app/metrics/metrics.ts";
import type { Adapters } from "../../app/runtime/adapters.ts";
import { warnOfLooseOutputs } from "../../app/runtime/loose-outputs.ts";
import type { Runtime } from "../../app/runtime/runtime.ts";
import { closeResources } from "../../app/server/close-resources.ts";
import { createRuntime } from "../../app/server/create-runtime.ts";
import type { RuntimeOptions } from "../../app/server/runtime-options.ts";
import { type Server, serverInternals } from "../../app/server/server.ts";
import type { Clock } from "../../base/process/clock.ts";
import { openChecked } from "../../hosts/container/adapters.ts";
import { createHttpServer } from "../../hosts/container-http/http-server.ts";
import { processSchedule } from "../../parts/once/held-claim.ts";
import { type CallWatch, CrashError } from "./faults.ts";
import { type Recorded, recordDeliveries, recordMessaging } from "./recorded.ts";
import type { TestTimers } from "./test-clock.ts";

/** A runtime with its in-memory state, and its HTTP server. */
export interface TestProcess {
  readonly runtime: Runtime;
  readonly adapters: Adapters;
  readonly port: number;
  /** Aborts with a CrashError when the process crashes. */
  readonly signal: AbortSignal;
  /** In-flight work fails with a CrashError and no longer reaches a store or the log. */
  crash(): void;
  close(): Promise<void>;
}

export interface TestProcessOptions
  extends Pick<RuntimeOptions, "auth" | "developmentSecret" | "environment" | "webhook"> {
  readonly clock: Clock;
  readonly timers: TestTimers;
  readonly variables: Readonly<Record<string, string>>;
  readonly logs: Record<string, unknown>[];
  readonly recorded: Recorded;
  readonly watch: CallWatch["watch"];
}

export async function startTestProcess(
  server: Server,
  options: TestProcessOptions,
): Promise<TestProcess> {
  const { variables, logs, watch: watchUntil, recorded, timers, ...rest } = options;
  const life = new AbortController();
  const runtime = createRuntime(server, {
    ...rest,
    measuring: await openContainerMetrics(serverInternals(server)),
    schedule: { ...processSchedule, repeat: timers.repeat },
    variables,
    write: (line) => {
      if (!life.signal.aborted) logs.push(JSON.parse(line) as Record<string, unknown>);
    },
    openAdapters: async () => {
      const opened = await openChecked(runtime, variables, "create");
      const watch = (client: Parameters<CallWatch["watch"]>[0]) => watchUntil(client, life.signal);
      watch(opened.database);
      if (opened.parameters !== undefined) watch(opened.parameters);
      const messaging = recordMessaging(opened.messaging, recorded, options.clock, watch);
      return { ...opened, messaging };
    },
  });
  recordDeliveries(runtime, recorded);
  serverInternals(server).started = true;
  await server.ready();
  const adapters = await runtime.adapters.open();
  warnOfLooseOutputs(runtime);
  const { http } = createHttpServer(runtime, {});
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe cast: the server listens on a port
  const stop = () => {
    const closed = new Promise((resolve) => http.close(resolve));
    http.closeAllConnections();
    return closed;
  };
  return {
    runtime,
    adapters,
    port,
    signal: life.signal,
    crash: () => {
      life.abort(new CrashError());
      void stop();
      void runtime.close();
    },
    close: async () => {
      await stop();
      await closeResources(runtime, 10_000);
    },
  };
}

/** Returns the result of `work`, or rejects with a CrashError once the process crashes. */
export function untilCrash<Result>(
  { signal }: TestProcess,
  work: Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const crashed = () => reject(signal.reason);
    signal.addEventListener("abort", crashed);
    work.finally(() => signal.removeEventListener("abort", crashed)).then(resolve, reject);
  });
}
