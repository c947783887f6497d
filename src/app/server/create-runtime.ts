import { BootError } from "../../base/errors/boot.ts";
import { describeError } from "../../base/errors/describe.ts";
import { type AuthOptions, authProblems } from "../../base/identity/auth-options.ts";
import { createAuthenticator } from "../../base/identity/authenticator.ts";
import { createServerLogger, type ServerLogger } from "../../base/log/server-logger.ts";
import { type Clock, systemClock } from "../../base/process/clock.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { createProcessState } from "../../base/process/lifecycle.ts";
import { createRandomDigits } from "../../base/request/trace.ts";
import { createSecrets, type Secrets } from "../../base/secrets/secrets.ts";
import { cacheSettings } from "../../parts/config/cache/cache-options.ts";
import { type CachedRows, createCachedRows } from "../../parts/config/cache/cached-rows.ts";
import { groupKeys } from "../../parts/config/cache/key-groups.ts";
import { createConfigResolver } from "../../parts/config/read/resolver.ts";
import { createRowCipher } from "../../parts/config/read/row-cipher.ts";
import { createHeaderCheck } from "../../parts/http/headers.ts";
import { bodyLimit } from "../../parts/http/limits.ts";
import { createRouteTable } from "../../parts/http/route-table.ts";
import { builtInChannels } from "../delivery/built-in-channels.ts";
import { createDeliveryJob } from "../delivery/delivery-job.ts";
import { configTable } from "../handlers/table.ts";
import { tableNames } from "../handlers/table-handle.ts";
import { metricsPage } from "../metrics/metrics-page.ts";
import { createRunLines } from "../observe/run-lines.ts";
import { observers } from "../observe/run-observer.ts";
import { isTracerRegistered, spanEnds } from "../observe/traced-runs.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import { configReaders } from "../registry/config-readers.ts";
import { usesMessages } from "../registry/registry.ts";
import { routed } from "../registry/routes.ts";
import { clientLogHandler } from "../routes/client-log.ts";
import { healthHandlers } from "../routes/health.ts";
import { openApiHandlers } from "../routes/openapi.ts";
import type { ParameterReader } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createRequestIds } from "../runtime/scope.ts";
import { createBootParameterLoader, readKeyRing } from "./boot-parameters.ts";
import { openWithParameters, RuntimeAdapters } from "./runtime-adapters.ts";
import type { RuntimeOptions } from "./runtime-options.ts";
import { type Server, type ServerInternals, serverInternals } from "./server.ts";

/** Default time that a concurrent duplicate waits for the first request, in milliseconds. */
const defaultWaitMs = 10_000;

type MutableRuntime = { -readonly [Name in keyof Runtime]: Runtime[Name] };

/** Binds a server to its host. */
export function createRuntime(server: Server, options: RuntimeOptions): Runtime {
  const state = serverInternals(server);
  const { variables, clock = systemClock, environment = state.environment } = options;
  const { auth, developmentSecret } = authentication(state, options);
  const { metrics } = options.measuring ?? {};
  const log = createLog(state, options);
  const tracing = isTracerRegistered()
    ? lazy(async () => (await import("../observe/tracing.ts")).createTracing())
    : undefined;
  const delivery = options.webhook === undefined ? state.options.delivery : options;
  const builtIn = builtInChannels(delivery, undefined, tracing);
  const channels = new Map([...builtIn, ...state.registry.channels]);
  const bootParameters = createBootParameterLoader(state, clock, developmentSecret);
  const adapters = new RuntimeAdapters(
    () => openWithParameters(runtime, state, bootParameters, () => options.openAdapters(runtime)),
    configReaders(state),
  );
  const prefix = state.options.dynamodb?.prefix ?? "keelson";
  const secrets = createRuntimeSecrets(state, clock, () => runtime, developmentSecret);
  let routes: Runtime["routes"] | undefined;
  const runtime: MutableRuntime = {
    server: state,
    environment,
    variables,
    clock,
    log,
    // Created at first access, because a function for a single handler never uses the routes.
    get routes() {
      routes ??= createRouteTable(routed(handlersOf(runtime)));
      return routes;
    },
    resolver: createConfigResolver({ appOverrides: state.options.config ?? {} }),
    configRows: createRuntimeRows({ state, options, adapters, tracing, clock }),
    secrets,
    cipher: createRowCipher(secrets, () => runtime.tableName(configTable.name), {
      bindVersion: state.options.keyRing?.bindVersion,
    }),
    authenticator: createAuthenticator({ auth, clock: options.clock }),
    verifiesTokens: auth !== undefined,
    refusalOfHeaders: createHeaderCheck(),
    bodyLimitBytes: bodyLimit(state.options.limits),
    tableName: tableNames(prefix, variables),
    newRequestId: createRequestIds(clock),
    // `spanEnds` comes last, because the log line of a run is written before its span ends.
    observer: observers(
      observers(
        createRunLines({
          requests: state.options.log?.requests,
          clock: options.clock,
          variables,
        }),
        options.measuring?.observer?.(clock),
      ),
      tracing && spanEnds,
    ),
    metrics,
    newTraceDigits: createRandomDigits(),
    tracing,
    messages: lazy(async () =>
      (await import("../../parts/messages/message-guard.ts")).createMessageGuard({
        proof: state.options.messages?.proof,
        source: prefix,
        secrets,
        clock,
        log,
      }),
    ),
    projections: lazy(async () =>
      (await import("../projections/projections.ts")).createProjections({
        projections: state.registry.projections,
        store: async () => (await adapters.open()).projections.open(),
        clock,
      }),
    ),
    inFlight: new Map(),
    reportedErrors: new Set(),
    channels,
    deliveryJob: createDeliveryJob(channels),
    lifecycle: createProcessState(),
    adapters,
    runs: lazyRuns(() => runtime, options),
    close: async () => {
      if (state.bound === bound) state.bound = undefined;
      metrics?.close?.();
      runtime.runs = lazyRuns(() => runtime, options);
      await adapters.close();
    },
  };
  const bound = async (): Promise<Runtime> => runtime;
  state.bound = bound;
  state.ready = async () => void (await adapters.open());
  return runtime;
}

/**
 * Returns the options of authentication, and the development secret if it may encrypt data.
 *
 * @throws Error if a secret of the environment is weak, or if production disables idempotency.
 */
function authentication(
  state: ServerInternals,
  { variables, auth: given, ...options }: RuntimeOptions,
): { readonly auth: AuthOptions | undefined; readonly developmentSecret: string | undefined } {
  const { environment = state.environment } = options;
  const secret = variables["KEELSON_AUTH_SECRET"] || options.developmentSecret;
  const auth = given ?? state.options.auth ?? (secret === undefined ? undefined : { secret });
  if (auth?.secret !== undefined && auth.secret === secret) requireSoundSecret(auth);
  if (environment === "production" && variables["POWERTOOLS_IDEMPOTENCY_DISABLED"]) {
    throw new Error(
      "POWERTOOLS_IDEMPOTENCY_DISABLED is set: writes would be done again; unset it in production",
    );
  }
  // In production and in Lambda, this secret never encrypts data.
  const isLocal =
    environment !== "production" && variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined;
  return { auth, developmentSecret: isLocal ? secret : undefined };
}

function createLog(state: ServerInternals, options: RuntimeOptions): ServerLogger {
  const { variables, clock, environment = state.environment } = options;
  const log = createServerLogger({
    ...state.options.log,
    environment,
    env: variables,
    clock,
    powertoolsThreshold: options.powertools,
    keep: options.keepRecord,
    ...(options.write === undefined ? {} : { write: options.write }),
  });
  const missing = options.measuring?.missing;
  if (missing !== undefined) log.warn("metrics.unavailable", { fix: `npm install ${missing}` });
  return log;
}

/**
 * Creates the cache of configuration rows, which needs only the first step of opening the adapters.
 */
function createRuntimeRows({
  state,
  options,
  adapters,
  tracing,
  clock,
}: {
  readonly state: ServerInternals;
  readonly options: RuntimeOptions;
  readonly adapters: RuntimeAdapters;
  readonly tracing: Runtime["tracing"];
  readonly clock: Clock;
}): CachedRows {
  return createCachedRows({
    ...cacheSettings(state.options.cache, options.isFrozenBetweenEvents === true),
    reader: {
      read: async (...parameters) => {
        const { configRows } = await adapters.openForReads();
        if (tracing === undefined) return configRows.read(...parameters);
        return (await tracing.open()).around("config fetch", () => configRows.read(...parameters));
      },
    },
    keyGroups: groupKeys(state.registry.configKeys.values()),
    clock,
    metrics: options.measuring?.metrics,
  });
}

function createRuntimeSecrets(
  { options }: ServerInternals,
  clock: Clock,
  runtimeOf: () => Runtime,
  developmentSecret: string | undefined,
): Secrets {
  const load = async (parameter: string) => {
    const { parameters } = await runtimeOf().adapters.open();
    // The cast is safe: a server that names a key ring has a parameter reader.
    const read = await readKeyRing(parameters as ParameterReader, parameter, developmentSecret);
    if ("problem" in read) throw new BootError([read.problem]);
    return read.keyRing;
  };
  const { keyRing } = options;
  return createSecrets({
    load: keyRing === undefined ? undefined : () => load(keyRing.parameter),
    clock,
    onFailure: (error) => {
      const { log, environment } = runtimeOf();
      log.error(
        "config.key_ring_failed",
        describeError(error, { requestId: "", environment }).log.data,
      );
    },
  });
}

function lazyRuns(runtimeOf: () => Runtime, { schedule }: RuntimeOptions): Lazy<RunServices> {
  return lazy(async () => {
    const { server, adapters, log, clock, metrics, tracing, lifecycle } = runtimeOf();
    const { createRunServices } = await import("../runtime/run-services.ts");
    return createRunServices({
      adapters: await adapters.open(),
      log,
      hasJobs: usesMessages(server.registry),
      clock,
      metrics,
      tracing,
      waitMs: server.options.once?.waitMs ?? defaultWaitMs,
      draining: lifecycle.draining,
      ...(schedule && { schedule }),
    });
  });
}

function handlersOf(runtime: Runtime) {
  const { server, environment } = runtime;
  return [
    ...server.registry.handlers.values(),
    ...healthHandlers(runtime),
    ...metricsPage(runtime),
    clientLogHandler(runtime),
    ...configHandlers(server.registry),
    ...openApiHandlers(server, environment),
  ];
}

/**
 * Checks a secret from the environment. `buildServer` has already checked its own `auth`.
 *
 * @throws Error with the name of the variable, never with the secret.
 */
function requireSoundSecret(auth: AuthOptions): void {
  const [problem] = authProblems(auth);
  if (problem !== undefined)
    throw new Error(`KEELSON_AUTH_SECRET: ${problem.message}; ${problem.fix}`);
}
