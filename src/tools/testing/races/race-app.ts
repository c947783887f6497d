import { usesMessages } from "../../../app/registry/registry.ts";
import { serve } from "../../../app/run/pipeline.ts";
import type { Runtime } from "../../../app/runtime/runtime.ts";
import { createRuntime } from "../../../app/server/create-runtime.ts";
import { type Server, serverInternals } from "../../../app/server/server.ts";
import { lazyStores } from "../../../aws/adapters/adapters.ts";
import { withDefaults } from "../../../base/identity/authenticator.ts";
import { signToken } from "../../../base/identity/token.ts";
import { nameOf } from "../../../base/types/handles.ts";
import { openStackHere, type StackHere } from "../../../embedded/stack/stack-here.ts";
import { openChecked } from "../../../hosts/container/adapters.ts";
import { splitTarget } from "../../../hosts/container-http/request-head.ts";
import type { HttpRequest, HttpResponse } from "../../../parts/http/message.ts";
import { callHandler, testContext } from "../app/call-handler.ts";
import { type Caller, tokenOf } from "../app/caller.ts";
import { deliverAgain } from "../app/settle.ts";
import { sendDirectly } from "../app/stack-transport.ts";
import type { TestApp, TestAppOptions } from "../app/test-app.ts";
import {
  type Recorded,
  startTestProcess,
  type TestProcess,
  untilCrash,
} from "../app/test-process.ts";
import { requestInit, type TestFetchOptions } from "../app/test-request.ts";
import { openTestRows, putParameters } from "../app/test-stack.ts";
import { settleOrder } from "./settle-order.ts";
import { gateRace, raceTasks } from "./task.ts";
import type { RaceTime } from "./time.ts";

/** Test app of one order, with its own tenant. Requests do not use a socket. */
export interface RaceApp extends Omit<TestApp, "calls" | "faults" | "env" | "close">, RaceTenant {}

/** Names that are new for each order. */
export interface RaceTenant {
  readonly tenantId: string;
  /** Returns the order's user, with these roles. */
  as(roles?: readonly string[]): Caller;
}

/** Secret of the race's tokens, which never leave the process. */
const secret = "the secret of a race, which signs tokens for its own stack";

/** Opens the stack, the adapters and the tables that all orders share. */
export async function openRaceStack(server: Server, time: RaceTime, options: TestAppOptions) {
  const stack = await openStackHere(time.now);
  try {
    return await openOn(stack, server, time, options);
  } catch (error) {
    await stack.close();
    throw error;
  }
}

async function openOn(
  stack: StackHere,
  server: Server,
  time: RaceTime,
  { parameters = {}, secureParameters = {}, environment }: TestAppOptions,
) {
  const { options, registry } = serverInternals(server);
  const { jwks: _replaced, ...auth } = { ...options.auth, secret: options.auth?.secret ?? secret };
  const variables = { LOG_LEVEL: "debug", ...stack.env };
  const bound = {
    ...{ variables, clock: time, auth, developmentSecret: secret },
    environment: environment ?? options.environment ?? "test",
  };
  await putParameters(stack, { String: parameters, SecureString: secureParameters });
  const first = createRuntime(server, {
    ...bound,
    write: () => undefined,
    openAdapters: (runtime) => openChecked(runtime, variables, "create"),
  });
  const opened = await first.adapters.open();
  // Opened only if the server has messages, because opening creates the queues.
  const messaging = usesMessages(registry) ? await opened.messaging.open() : undefined;
  for (const client of [opened.database, opened.parameters, ...(messaging?.clients ?? [])]) {
    if (client === undefined) continue;
    sendDirectly(client, stack, (work) => raceTasks.exit(work));
    gateRace(client);
  }
  let current: Runtime = first;
  const rows = await openTestRows({ ...stack, waitMs: 0, mostMs: 0 }, time, async () => current);
  const boot = async (order: OrderState): Promise<TestProcess> => {
    const process = await startTestProcess(server, {
      ...bound,
      ...order,
      timers: { random: () => Math.random() }, // the race has its timers
      watch: () => undefined, // the clients are gated already
      shared: { ...opened, ...lazyStores(first, opened.database) },
    });
    current = process.runtime;
    return process;
  };
  return {
    ...{ auth, clock: time, rows, boot },
    clear: stack.clear,
    close: async () => {
      rows.close();
      await first.close();
      await stack.close();
    },
  };
}

type RaceStack = Awaited<ReturnType<typeof openRaceStack>>;

interface OrderState {
  readonly logs: Record<string, unknown>[];
  readonly recorded: Recorded;
}

/** Opens the app of one order, in new processes on the empty stack. */
export async function openRaceApp(stack: RaceStack, tenant: RaceTenant, processes: number) {
  const { auth, clock, rows } = stack;
  const logs: Record<string, unknown>[] = [];
  const unread: NonNullable<Recorded["unread"]> = [];
  const recorded: Recorded = { events: [], jobs: [], deliveries: [], unread };
  // A new process belongs to no request.
  const boot = () => raceTasks.exit(() => stack.boot({ logs, recorded }));
  const running: Promise<TestProcess>[] = [];
  for (let index = 0; index < processes; index += 1) running.push(boot());
  /** Two requests of a crashed process get the same new one. */
  const processOf = async (index: number): Promise<TestProcess> => {
    const found = running[index];
    const process = await found;
    if (process?.signal.aborted === false) return process;
    if (running[index] === found) running[index] = boot();
    return processOf(index);
  };
  /** Runs `work` in the process of the calling request. */
  const inProcess = async <Result>(work: (process: TestProcess) => Promise<Result>) => {
    const task = raceTasks.getStore();
    const process = await processOf((task?.actor?.index ?? 0) % processes);
    if (task === undefined) return work(process);
    const own = { ...task, life: process };
    return untilCrash(
      process,
      raceTasks.run(own, () => work(process)),
    );
  };
  const sinceMs = clock.now();
  const app: RaceApp = {
    ...tenant,
    fetch: (path, options) => inProcess(({ runtime }) => fetched(runtime, auth, path, options)),
    token: (caller, expiry) => signToken({ ...tokenOf(caller, auth), ...expiry }, clock),
    // Safe cast: a handle's type has the output that its handler declares.
    call: (handler, input, options = {}) =>
      inProcess(({ runtime }) => callHandler(runtime, nameOf(handler), input, options) as never),
    ctx: (caller, options = {}) => inProcess((process) => testContext(process, caller, options)),
    rows,
    logs,
    events: recorded.events,
    jobs: recorded.jobs,
    deliveries: recorded.deliveries,
    deliver: (message) => inProcess((process) => deliverAgain(process, message)),
    settled: () => inProcess((process) => settleOrder(process, unread, sinceMs)),
    clock,
  };
  const close = async () => {
    for (const process of await Promise.all(running))
      if (!process.signal.aborted) await process.close();
  };
  return { app, close };
}

const origin = "http://race.localhost";

/** Sends a request without a socket. A gateway has identified its caller. */
async function fetched(
  runtime: Runtime,
  auth: RaceStack["auth"],
  target: string,
  options: TestFetchOptions = {},
): Promise<Response> {
  const { as, signal } = options;
  const sent = new Request(`${origin}${target}`, requestInit(options));
  const bytes = new Uint8Array(await sent.arrayBuffer());
  const { user, tenant, roles } = withDefaults({ ...auth.claims });
  const request: HttpRequest = {
    ...splitTarget(sent.url.slice(origin.length)),
    method: sent.method,
    headers: {
      host: "race.localhost",
      ...(bytes.length > 0 && { "content-length": String(bytes.length) }),
      ...Object.fromEntries(sent.headers),
    },
    ip: undefined,
    signal: signal ?? new AbortController().signal,
    gatewayClaims: as && {
      by: "jwt",
      claims: { [user]: as.id, [tenant]: as.tenantId, [roles]: as.roles ?? [] },
    },
    readBody: () => bytes,
  };
  return new Promise((resolve, reject) => {
    const send = (response: HttpResponse) => {
      resolve(webResponse(response));
      return undefined;
    };
    serve({ runtime, routes: runtime.routes }, request, { send }).catch(reject);
  });
}

function webResponse({ status, headers, cookies, body }: HttpResponse): Response {
  const sent = new Headers(headers);
  for (const cookie of cookies) sent.append("set-cookie", cookie);
  // Safe cast: bytes of a response are never shared.
  const given = body as Exclude<typeof body, Uint8Array> | Uint8Array<ArrayBuffer>;
  return new Response([204, 205, 304].includes(status) ? null : given, {
    status,
    headers: sent,
  });
}
