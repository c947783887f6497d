import { BootError } from "../../base/errors/boot.ts";
import { describeError } from "../../base/errors/describe.ts";
import { type AuthOptions, authProblems, namesTokens } from "../../base/identity/auth-options.ts";
import { createAuthenticator } from "../../base/identity/authenticator.ts";
import { createServerLogger, type ServerLogger } from "../../base/log/server-logger.ts";
import { systemClock } from "../../base/process/clock.ts";
import { type Lazy, lazy } from "../../base/process/lazy.ts";
import { createProcessState } from "../../base/process/lifecycle.ts";
import { isOnLambda } from "../../base/process/platform.ts";
import { createRandomDigits } from "../../base/request/trace.ts";
import { createSecrets, type Secrets } from "../../base/secrets/secrets.ts";
import { defined } from "../../base/types/defined.ts";
import type { ApiKeys } from "../../parts/api-keys/api-keys.ts";
import { cacheSettings } from "../../parts/config/cache/cache-options.ts";
import {
  type CachedRows,
  createCachedRows,
  groupKeys,
} from "../../parts/config/cache/cached-rows.ts";
import { createConfigResolver } from "../../parts/config/read/resolver.ts";
import { createRowCipher } from "../../parts/config/read/row-cipher.ts";
import { createHeaderCheck } from "../../parts/http/headers.ts";
import { bodyLimit } from "../../parts/http/limits.ts";
import { createRouteTable } from "../../parts/http/route-table.ts";
import { onceRule } from "../../parts/once/once-by.ts";
import { builtInChannels, createDeliveryJob } from "../delivery/channels.ts";
import { configTable } from "../handlers/table.ts";
import { tableNames } from "../handlers/table-handle.ts";
import { metricsPage } from "../metrics/metrics-page.ts";
import { createColdStart, createRunLines } from "../observe/run-lines.ts";
import { isTracerRegistered, observers, spanEnds } from "../observe/run-observer.ts";
import { apiKeyHandlers } from "../operators/api-key-handlers.ts";
import { configHandlers } from "../operators/config-handlers.ts";
import { configReaders } from "../registry/declared-server.ts";
import { routed, usesMessages } from "../registry/registry.ts";
import { clientLogHandler } from "../routes/client-log.ts";
import { healthHandlers } from "../routes/health.ts";
import { openApiHandlers } from "../routes/openapi.ts";
import type { ParameterReader } from "../runtime/adapters.ts";
import type { RunServices } from "../runtime/run-services.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createRequestIds } from "../runtime/scope.ts";
import { readKeyRing } from "./boot-parameters.ts";
import { identifying, suspending, verifying } from "./callers.ts";
import { openingWithParameters, RuntimeAdapters } from "./runtime-adapters.ts";
import type { RuntimeOptions } from "./runtime-options.ts";
import { type Server, type ServerInternals, serverInternals } from "./server.ts";

type MutableRuntime = { -readonly [Name in keyof Runtime]: Runtime[Name] };

/** Binds a server to its host. */
export function createRuntime(server: Server, options: RuntimeOptions): Runtime {
  const state = serverInternals(server);
  const { variables, clock = systemClock, environment = state.environment } = options;
  const { auth, developmentSecret } = authentication(state, options);
  const log = createLog(state, options);
  const tracing = isTracerRegistered()
    ? lazy(async () => (await import("../observe/tracing.ts")).createTracing())
    : undefined;
  const delivery = options.webhook === undefined ? state.options.delivery : options;
  const builtIn = builtInChannels(delivery, undefined, tracing);
  const channels = new Map([...builtIn, ...state.registry.channels]);
  const adapters = new RuntimeAdapters(
    openingWithParameters(
      state,
      developmentSecret,
      () => runtime,
      () => options.openAdapters(runtime),
    ),
    configReaders(state),
  );
  const { dynamodb: { prefix = "keelson" } = {} } = state.options;
  const tableName = tableNames(prefix, variables);
  const parts: Parts = {
    server: state,
    environment,
    clock,
    log,
    metrics: options.measuring?.metrics,
    tracing,
    lifecycle: createProcessState(),
    adapters,
    apiKeys: verifying(() => parts),
  };
  const coldStart = createColdStart(variables);
  const secrets = createRuntimeSecrets(parts, developmentSecret);
  let routes: Runtime["routes"] | undefined;
  const runtime: MutableRuntime = {
    ...parts,
    variables,
    // Created at first access, because a function for a single handler never uses the routes.
    get routes() {
      routes ??= createRouteTable(routed(handlersOf(parts)));
      return routes;
    },
    resolver: createConfigResolver({ appOverrides: state.options.config ?? {} }),
    configRows: createRuntimeRows(parts, options.isFrozenBetweenEvents),
    secrets,
    cipher: createRowCipher(secrets, () => tableName(configTable.name), {
      bindVersion: state.options.keyRing?.bindVersion,
    }),
    authenticator: identifying(parts, auth, createAuthenticator({ auth, clock: options.clock })),
    verifiesTokens: namesTokens(auth) || auth?.resolve !== undefined,
    refusalOfHeaders: createHeaderCheck(),
    bodyLimitBytes: bodyLimit(state.options.limits),
    tenantsInFlight: options.tenantsInFlight,
    tableName,
    newRequestId: createRequestIds(clock),
    // `spanEnds` comes last, because the log line of a run is written before its span ends.
    observer: observers(
      observers(
        createRunLines({ ...state.options.log, clock: options.clock, coldStart }),
        options.measuring?.observer?.(clock),
      ),
      observers(options.tenantsInFlight, tracing && spanEnds),
    ),
    coldStart,
    newTraceDigits: createRandomDigits(),
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
    ...admission(state, () => runtime),
    ...{ inFlight: new Map(), reportedErrors: new Set() },
    channels,
    deliveryJob: createDeliveryJob(channels),
    runs: lazyRuns(parts, options.schedule),
    close: async ({ keepsMetrics } = { keepsMetrics: false }) => {
      if (state.bound === bound) state.bound = undefined;
      if (!keepsMetrics) parts.metrics?.close?.();
      runtime.runs = lazyRuns(parts, options.schedule);
      await adapters.close();
    },
  };
  const bound = async (): Promise<Runtime> => runtime;
  state.bound = bound;
  state.ready = async () => void (await adapters.open());
  return runtime;
}

/** Members of a runtime that others are made of. */
interface Parts
  extends Pick<
    Runtime,
    "server" | "environment" | "clock" | "log" | "metrics" | "tracing" | "lifecycle"
  > {
  readonly adapters: RuntimeAdapters;
  readonly apiKeys: Lazy<ApiKeys>;
}

/** @throws Error if a secret of the environment is weak, or production disables Powertools' idempotency. */
function authentication(
  state: ServerInternals,
  { variables, auth: given, ...options }: RuntimeOptions,
): { readonly auth: AuthOptions | undefined; readonly developmentSecret: string | undefined } {
  const { environment = state.environment } = options;
  const secret = variables["KEELSON_AUTH_SECRET"] || options.developmentSecret;
  const declared = given ?? state.options.auth;
  const isWhole = namesTokens(declared) || declared?.resolve !== undefined;
  const auth = isWhole || secret === undefined ? declared : { ...declared, secret };
  if (auth?.secret !== undefined && auth.secret === secret) {
    // `buildServer` has already checked its own `auth`. The message never contains the secret.
    const [problem] = authProblems(auth);
    if (problem !== undefined)
      throw new Error(`KEELSON_AUTH_SECRET: ${problem.message}; ${problem.fix}`);
  }
  if (environment === "production" && variables["POWERTOOLS_IDEMPOTENCY_DISABLED"]) {
    throw new Error(
      "POWERTOOLS_IDEMPOTENCY_DISABLED is set: it turns off Powertools' idempotency in this process; unset it in production",
    );
  }
  // In production and on Lambda, the development secret never encrypts data.
  const isLocal = environment !== "production" && !isOnLambda(variables);
  return { auth, developmentSecret: isLocal ? secret : undefined };
}

function createLog(state: ServerInternals, options: RuntimeOptions): ServerLogger {
  const { variables, clock, environment = state.environment, write } = options;
  const log = createServerLogger({
    ...state.options.log,
    environment,
    env: variables,
    clock,
    powertoolsThreshold: options.powertools,
    keep: options.keepRecord,
    ...defined({ write }),
  });
  const missing = options.measuring?.missing;
  if (missing !== undefined) log.warn("metrics.unavailable", { fix: `npm install ${missing}` });
  return log;
}

/** The cache of rows needs only the first step of opening the adapters. */
function createRuntimeRows(
  { server: { options, registry }, adapters, tracing, clock, metrics }: Parts,
  isFrozenBetweenEvents = false,
): CachedRows {
  return createCachedRows({
    ...cacheSettings(options.cache, isFrozenBetweenEvents),
    reader: {
      read: async (...parameters) => {
        const { configRows } = await adapters.openForReads();
        if (tracing === undefined) return configRows.read(...parameters);
        return (await tracing.open()).around("config fetch", () => configRows.read(...parameters));
      },
    },
    keyGroups: groupKeys(registry.configKeys.values()),
    clock,
    metrics,
  });
}

function createRuntimeSecrets(
  { server, adapters, environment, clock, log }: Parts,
  developmentSecret: string | undefined,
): Secrets {
  const load = async (parameter: string) => {
    const { parameters } = await adapters.open();
    // The cast is safe: a server that names a key ring has a parameter reader.
    const read = await readKeyRing(parameters as ParameterReader, parameter, developmentSecret);
    if ("problem" in read) throw new BootError([read.problem]);
    return read.keyRing;
  };
  const { keyRing } = server.options;
  return createSecrets({
    load: keyRing && (() => load(keyRing.parameter)),
    clock,
    onFailure: (error) => {
      const { data } = describeError(error, { requestId: "", environment }).log;
      log.error("config.key_ring_failed", data);
    },
  });
}

function lazyRuns(
  { server, adapters, lifecycle, log, clock, metrics, tracing }: Parts,
  schedule: RuntimeOptions["schedule"],
): Lazy<RunServices> {
  return lazy(async () => {
    const { createRunServices } = await import("../runtime/run-services.ts");
    return createRunServices({
      // Claims do not need the SDK. Other calls load it.
      adapters: await adapters.openForReads(),
      log,
      hasJobs: usesMessages(server.registry),
      clock,
      metrics,
      tracing,
      waitMs: (server.options.once || undefined)?.waitMs ?? 10_000,
      draining: lifecycle.draining,
      ...defined({ schedule }),
    });
  });
}

/** Suspensions and rate limits. */
function admission({ options, registry }: ServerInternals, runtimeOf: () => Runtime) {
  const places = [options, ...registry.features, ...registry.handlers.values()];
  return {
    suspensions: options.tenants === true ? suspending(runtimeOf) : undefined,
    isLimited: places.some(({ rateLimit }) => rateLimit !== undefined),
    limits: lazy(async () => new (await import("../run/rate-limits.ts")).RateGate(runtimeOf())),
  };
}

function handlersOf(parts: Parts) {
  const { registry, options } = parts.server;
  const all = [
    ...registry.handlers.values(),
    ...healthHandlers(parts),
    ...metricsPage(parts),
    clientLogHandler(parts.clock),
    ...configHandlers(registry),
    ...apiKeyHandlers(options, parts),
    ...openApiHandlers(parts),
  ];
  return all.map((handler) =>
    handler.kind === "query"
      ? handler
      : { ...handler, onceRule: onceRule(handler.once, options.once) },
  );
}
