import { once } from "node:events";
import type { Server as HttpServer, RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { ChannelDeclaration } from "../../../app/handlers/message-handlers.ts";
import { openContainerMetrics } from "../../../app/metrics/metrics.ts";
import { warnOfLooseOutputs } from "../../../app/registry/loose-output.ts";
import type { Adapters, Messaging } from "../../../app/runtime/adapters.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { closeResources } from "../../../app/server/close-resources.ts";
import { createRuntime } from "../../../app/server/create-runtime.ts";
import type { RuntimeOptions } from "../../../app/server/runtime-options.ts";
import { type Server, serverInternals } from "../../../app/server/server.ts";
import { openTenantsInFlight } from "../../../app/server/tenants-in-flight.ts";
import type { Clock } from "../../../base/process/clock.ts";
import { lazy } from "../../../base/process/lazy.ts";
import { openChecked } from "../../../hosts/container/adapters.ts";
import { createHttpServer } from "../../../hosts/container-http/http-server.ts";
import { deliveryJob } from "../../../parts/messages/delivery.ts";
import { readEnvelope, type SharedEvent } from "../../../parts/messages/envelope.ts";
import { type JobMessage, readJob } from "../../../parts/messages/job-message.ts";
import type { MessageQueue } from "../../../parts/messages/message-queue.ts";
import { type ClaimSchedule, processSchedule } from "../../../parts/once/held-claim.ts";
import { type CallWatch, type Client, CrashError } from "./faults.ts";

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

/** Lets a test kit follow the requests and the log lines of an app. */
export interface Following {
  /** Called for each request. `serve` passes it to the server. */
  request(...exchange: [...Parameters<RequestListener>, serve: () => void]): void;
  line(line: string): void;
}

interface TestProcessOptions
  extends Pick<RuntimeOptions, "auth" | "developmentSecret" | "environment" | "webhook"> {
  readonly clock: Clock;
  /** Replace the timers and random numbers of claims. */
  readonly timers: Partial<ClaimSchedule>;
  readonly variables: Readonly<Record<string, string>>;
  readonly logs: Record<string, unknown>[];
  readonly recorded: Recorded;
  readonly watch: CallWatch["watch"];
  readonly connect?: ((client: Client) => void) | undefined;
  readonly following?: Following | undefined;
  /**
   * Adapters of several processes, which do not listen on a port, and whose end leaves the server's
   * resources open. Default: the process's own, whose calls pass through `watch`.
   */
  readonly shared?: Adapters;
}

export async function startTestProcess(
  server: Server,
  options: TestProcessOptions,
): Promise<TestProcess> {
  const { logs, recorded, timers, following, watch, connect, shared, ...rest } = options;
  const life = new AbortController();
  const runtime: Runtime = createRuntime(server, {
    ...rest,
    measuring: await openContainerMetrics(serverInternals(server)),
    tenantsInFlight: await openTenantsInFlight(serverInternals(server)),
    schedule: { ...processSchedule, ...timers },
    write: (line) => {
      if (life.signal.aborted) return;
      logs.push(JSON.parse(line) as Record<string, unknown>);
      following?.line(line);
    },
    openAdapters: async () => {
      const opened = shared ?? (await openWatched(runtime, options, life.signal));
      const open = async () => recordMessaging(await opened.messaging.open(), recorded);
      const close = shared === undefined ? opened.close : async () => {};
      return { ...opened, close, messaging: lazy(open) };
    },
  });
  recordDeliveries(runtime, recorded);
  serverInternals(server).started = true;
  await server.ready();
  const adapters = await runtime.adapters.open();
  // So that events that a test puts on a bus reach their queue.
  if (runtime.server.registry.receivers.size > 0) await adapters.messaging.open();
  warnOfLooseOutputs(runtime);
  const { port, stop } = shared === undefined ? await listen(runtime, following) : unheard;
  return {
    ...{ runtime, adapters, port },
    signal: life.signal,
    crash: () => {
      life.abort(new CrashError());
      void stop();
      void runtime.close();
    },
    close: async () => {
      await stop();
      await (shared === undefined ? closeResources(runtime, 10_000) : runtime.close());
    },
  };
}

const unheard = { port: 0, stop: async () => {} };

async function listen(runtime: Runtime, following: Following | undefined) {
  const { http } = createHttpServer(runtime, {});
  if (following !== undefined) followRequests(http, following);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // safe cast: the server listens on a port
  const stop = async () => {
    const closed = new Promise((resolve) => http.close(resolve));
    http.closeAllConnections();
    await closed;
  };
  return { port, stop };
}

function followRequests(http: HttpServer, following: Following) {
  // Safe cast: these listen to requests.
  const listeners = http.listeners("request") as RequestListener[];
  http.removeAllListeners("request");
  http.on("request", (message, response) =>
    following.request(message, response, () => {
      for (const listener of listeners) listener(message, response);
    }),
  );
}

export function untilCrash<Result>(
  { signal }: Pick<TestProcess, "signal">,
  work: Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const crashed = () => reject(signal.reason);
    signal.addEventListener("abort", crashed);
    work.finally(() => signal.removeEventListener("abort", crashed)).then(resolve, reject);
  });
}

/** Message sent by a channel. */
export interface SentDelivery {
  /** ID of the delivery. A delivery sent more than once is listed once. */
  readonly id: string;
  readonly channel: string;
  readonly message: unknown;
  readonly tenantId: string | undefined;
  readonly userId: string | undefined;
  readonly origRequestId: string;
}

export interface Recorded {
  readonly events: SharedEvent[];
  readonly jobs: JobMessage[];
  readonly deliveries: SentDelivery[];
  /** All messages sent, each once, for an app that does not read queues. */
  readonly unread?: (SharedEvent | JobMessage)[];
}

async function openWatched(
  runtime: Runtime,
  { variables, clock, connect, watch: watchUntil }: TestProcessOptions,
  life: AbortSignal,
): Promise<Adapters> {
  const watch = (client: Client) => {
    connect?.(client);
    watchUntil(client, life);
  };
  const opened = await openChecked(runtime, variables, "create");
  watch(opened.database);
  if (opened.parameters !== undefined) watch(opened.parameters);
  const messaging = lazy(async (): Promise<Messaging> => {
    const messaging = await opened.messaging.open();
    for (const client of messaging.clients) {
      watch(client);
      sendClock(client, clock);
    }
    return messaging;
  });
  return { ...opened, messaging };
}

function recordMessaging(messaging: Messaging, recorded: Recorded): Messaging {
  const messageIds = new Set<string>();
  const put: Messaging["bus"]["put"] = async (events) => {
    const reasons = await messaging.bus.put(events);
    for (const [index, { text }] of events.entries()) {
      const event = readEnvelope(text);
      const { eventId, origRequestId: requestId } = event;
      const isNew = !recorded.events.some((other) => other.eventId === eventId);
      if (reasons[index] !== undefined || !isNew) continue;
      // Safe cast: a payload is an object. The sent payload includes the request ID.
      const payload = { ...(event.payload as object), requestId };
      recorded.events.push({ ...event, payload });
      recorded.unread?.push(event);
    }
    return reasons;
  };
  const sendTo =
    (queue: MessageQueue): MessageQueue["send"] =>
    async (body, options) => {
      const messageId = await queue.send(body, options);
      const job = readJob(body);
      // For a dropped duplicate, the queue returns the earlier job's message ID.
      const isNew =
        !messageIds.has(messageId) && !recorded.jobs.some(({ jobId }) => jobId === job.jobId);
      messageIds.add(messageId);
      if (isNew) recorded.unread?.push(job);
      if (isNew && job.name !== deliveryJob) recorded.jobs.push(job);
      return messageId;
    };
  const recordedQueue = (queue: MessageQueue) => ({ ...queue, send: sendTo(queue) });
  return {
    ...messaging,
    bus: { ...messaging.bus, put },
    jobs: recordedQueue(messaging.jobs),
    fairJobs: recordedQueue(messaging.fairJobs),
  };
}

/** Sends the test clock's offset, which the embedded stack follows. */
function sendClock({ middlewareStack }: Messaging["clients"][number], clock: Clock) {
  middlewareStack.add(
    (next) => (parameters) => {
      // Safe cast: at this step of the stack, every request is an HTTP request.
      const request = parameters.request as { readonly headers: Record<string, string> };
      request.headers["x-keelson-clock-offset"] = String(Math.max(0, clock.now() - Date.now()));
      return next(parameters);
    },
    { step: "build", name: "keelsonTestClock" },
  );
}

function recordDeliveries({ channels }: Pick<Runtime, "channels">, { deliveries }: Recorded) {
  // Safe cast to a mutable map: only this runtime has it, and only a test changes it.
  const own = channels as Map<string, ChannelDeclaration>;
  for (const [name, declaration] of channels) {
    own.set(name, {
      ...declaration,
      send: async (ctx, message, delivery) => {
        await declaration.send(ctx, message, delivery);
        if (deliveries.some(({ id }) => id === delivery.id)) return;
        const { tenantId, id: userId } = ctx.user;
        const facts = { tenantId, userId, origRequestId: ctx.requestId };
        deliveries.push({ id: delivery.id, channel: name, message, ...facts });
      },
    });
  }
}
