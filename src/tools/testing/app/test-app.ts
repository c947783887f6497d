import { randomBytes } from "node:crypto";
import type { PipelineContext } from "../../../app/handlers/pipeline-context.ts";
import type { WebhookOptions } from "../../../app/registry/options.ts";
import { type Server, serverInternals } from "../../../app/server/server.ts";
import { signingSecret } from "../../../base/identity/auth-options.ts";
import { signToken } from "../../../base/identity/token.ts";
import type { Environment } from "../../../base/process/environment.ts";
import { defined } from "../../../base/types/defined.ts";
import { type AnswerOf, type Handle, type InputOf, nameOf } from "../../../base/types/handles.ts";
import type { SharedEvent } from "../../../parts/messages/envelope.ts";
import type { JobMessage } from "../../../parts/messages/job-message.ts";
import { callHandler, type TestCallOptions, testContext } from "./call-handler.ts";
import { type Caller, type TestTokenOptions, tokenOf } from "./caller.ts";
import { createCallWatch, type Faults, type Gate } from "./faults.ts";
import { deliverAgain, type OthersEvent, settle } from "./settle.ts";
import { createTestClock, type TestClock } from "./test-clock.ts";
import {
  type Following,
  type Recorded,
  type SentDelivery,
  startTestProcess,
  type TestProcess,
  untilCrash,
} from "./test-process.ts";
import { requestInit, type TestFetchOptions } from "./test-request.ts";
import {
  openTestRows,
  putParameters,
  startTestStack,
  type TestRow,
  type TestStack,
} from "./test-stack.ts";

/** Server on its own embedded stack, for tests. */
export interface TestApp {
  /** Sends a request to the server's container over HTTP. */
  fetch(path: string, options?: TestFetchOptions): Promise<Response>;
  /** Signs a token that this app accepts, using the app's clock. */
  token(caller: Caller, options?: TestTokenOptions): Promise<string>;
  /**
   * Calls a handler, given by its handle or its full name, without HTTP. Returns the body or throws
   * the handler's typed error. The body of a write has been through JSON, so its dates are strings.
   */
  call<Handler extends Handle<"query" | "write"> | string>(
    handler: Handler,
    input?: InputOf<Handler>,
    options?: TestCallOptions,
  ): Promise<AnswerOf<Handler>>;
  /**
   * Returns the `ctx` of a write handler that never ends: each publish or commit is stored
   * immediately.
   */
  ctx(
    caller: Caller,
    options?: { readonly requestId?: string; readonly handler?: string },
  ): Promise<PipelineContext>;
  readonly rows: {
    /** Writes a configuration row without validation. This app's next read sees it. */
    put(row: TestRow): Promise<void>;
  };
  /** Log records so far, parsed. */
  readonly logs: readonly Readonly<Record<string, unknown>>[];
  /**
   * Events put on the bus so far, each once, as sent: the payload includes the `requestId`
   * (specification 6.3).
   */
  readonly events: readonly SharedEvent[];
  /** Jobs enqueued so far, each once, without duplicates that the queue dropped. */
  readonly jobs: readonly JobMessage[];
  /** Messages sent by channels so far, each once. */
  readonly deliveries: readonly SentDelivery[];
  /**
   * Redelivers an event or a job, or delivers an event of another sender to `r.receive`.
   *
   * @returns `processed` if any consumer ran, `handed-back` if another worker is running it,
   * `skipped` if everything is already done.
   * @throws the error of the consumer or the job.
   */
  deliver(
    message: SharedEvent | JobMessage | OthersEvent,
  ): Promise<"processed" | "skipped" | "handed-back">;
  /**
   * Runs due schedules and processes messages until no event, job, outbox row or delivery is left.
   * The app consumes messages only during this call. The call advances the clock to the next retry,
   * but does not wait for work that is due later.
   *
   * @throws Error naming each item that is stuck, failed too often or went to a dead-letter queue;
   * CrashError if a fault crashes the app.
   */
  settled(): Promise<void>;
  /**
   * Number of calls sent to the store, SSM, the bus and the queues so far, by operation:
   * `{ BatchGetItem: 2 }`. Calls that create tables are not counted.
   */
  readonly calls: Readonly<Record<string, number>>;
  readonly clock: TestClock;
  readonly faults: Faults;
  /** Environment variables that point another host, in this process or another, at this stack. */
  readonly env: Readonly<Record<string, string>>;
  /** Closes resources registered with `onClose`, stops everything and discards the data. */
  close(): Promise<void>;
}

/** Options of {@link startTestApp}. */
export interface TestAppOptions {
  /** SSM parameters by name, set before the server reads them. Default: no parameters. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** SSM SecureString parameters by name, for example a key ring. Default: no parameters. */
  readonly secureParameters?: Readonly<Record<string, string>>;
  /**
   * Environment of the app. Default: the server's `environment`, otherwise `test`, regardless of
   * `NODE_ENV`.
   */
  readonly environment?: Environment;
  /**
   * Webhook targets allowed, for example a server in the test. Overrides the server's
   * `delivery.webhook`.
   */
  readonly webhooks?: Pick<WebhookOptions, "allowHttp" | "allowPrivate">;
}

/**
 * Starts a server on its own embedded stack, in memory and on free ports. If
 * `KEELSON_TEST_ENDPOINT` is set, the app uses the emulator at that address instead.
 *
 * @example
 * const app = await startTestApp(server);
 * const response = await app.fetch("/files", { as: { id: "ann", tenantId: "acme" } });
 */
export async function startTestApp(server: Server, options: TestAppOptions = {}): Promise<TestApp> {
  return (await startWatchedApp(server, options)).app;
}

export interface WatchedAppOptions extends TestAppOptions {
  /** Maximum number of times that settling advances the clock. Default 120. */
  readonly maxSteps?: number;
  readonly gate?: Gate;
  /** See {@link startTestStack}. Default false. */
  readonly inProcess?: boolean;
  readonly following?: Following;
}

/** The crash kit also needs the sequence of the app's calls, the isolation kit the calls. */
export async function startWatchedApp(
  server: Server,
  { parameters = {}, secureParameters = {}, inProcess, ...options }: WatchedAppOptions,
) {
  const stack = await startTestStack(server, inProcess);
  try {
    await putParameters(stack, { String: parameters, SecureString: secureParameters });
    return await startOn(stack, server, options);
  } catch (error) {
    await stack.close();
    throw error;
  }
}

async function startOn(
  stack: TestStack,
  server: Server,
  { environment, webhooks, maxSteps, gate, following }: WatchedAppOptions,
) {
  const { clock, timers } = createTestClock();
  const sinceMs = clock.now();
  const logs: Record<string, unknown>[] = [];
  const recorded: Recorded = { events: [], jobs: [], deliveries: [] };
  const { options } = serverInternals(server);
  const secret = signingSecret(options.auth?.secret) ?? randomBytes(32).toString("base64url");
  const all = options.auth?.secret ?? secret;
  const { jwks: _replaced, ...auth } = { ...options.auth, secret: all };
  const { calls, sequence, faults, watch } = createCallWatch(() => crash(), gate);
  const variables = { LOG_LEVEL: "debug", ...stack.env };
  const webhook = webhooks && { ...options.delivery?.webhook, ...webhooks };
  const process = {
    ...{
      variables,
      clock,
      timers,
      auth,
      developmentSecret: secret,
      logs,
      recorded,
      watch,
      following,
      connect: stack.connect,
    },
    environment: environment ?? options.environment ?? "test",
    ...defined({ webhook }),
  };
  const start = () => startTestProcess(server, process);
  let current = await start();
  let next: Promise<TestProcess> | undefined;
  const crash = () => {
    current.crash();
    next = undefined;
  };
  const running = async () => {
    if (!current.signal.aborted) return current;
    next ??= start();
    const starting = next;
    try {
      current = await starting;
    } catch (error) {
      // The next request starts again, unless one has started since.
      if (next === starting) next = undefined;
      throw error;
    }
    return current;
  };
  const inProcess = async <Result>(work: (process: TestProcess) => Promise<Result>) => {
    const process = await running();
    return untilCrash(process, work(process));
  };
  const rows = await openTestRows(stack, clock, async () => (await running()).runtime);

  const app: TestApp = {
    fetch: async (path, { as, signal, ...options } = {}) => {
      const { port, signal: life } = await running();
      const authorization = as && `Bearer ${await app.token(as)}`;
      return fetch(`http://127.0.0.1:${port}${path}`, {
        ...requestInit(options, defined({ authorization })),
        redirect: "manual",
        signal: signal === undefined ? life : AbortSignal.any([signal, life]),
      });
    },
    token: (caller, expiry) =>
      signToken({ ...tokenOf(caller, { ...auth, secret }), ...expiry }, clock),
    // Safe cast: a handle's type has the output that its handler declares.
    call: (handler, input, options = {}) =>
      inProcess(({ runtime }) => callHandler(runtime, nameOf(handler), input, options) as never),
    ctx: async (caller, options = {}) => testContext(await running(), caller, options),
    rows,
    logs,
    ...recorded,
    deliver: (message) => inProcess((process) => deliverAgain(process, message)),
    settled: () => inProcess((process) => settle(process, { ...stack, clock, sinceMs, maxSteps })),
    calls,
    clock,
    faults,
    env: { ...stack.env, KEELSON_AUTH_SECRET: secret },
    close: async () => {
      if (!current.signal.aborted) await current.close();
      rows.close();
      await stack.close();
    },
  };
  return { app, sequence };
}
