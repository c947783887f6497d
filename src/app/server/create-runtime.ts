import { BootError } from "../../base/errors/boot.ts";
import { describeError } from "../../base/errors/describe.ts";
import { type AuthOptions, authProblems } from "../../base/identity/auth-options.ts";
import { createAuthenticator } from "../../base/identity/authenticator.ts";
import { createServerLogger } from "../../base/log/server-logger.ts";
import { systemClock } from "../../base/process/clock.ts";
import { lazy } from "../../base/process/lazy.ts";
import { createRandomDigits } from "../../base/request/trace.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import { cacheSettings } from "../../parts/config/cache/cache-options.ts";
import { createCachedRows } from "../../parts/config/cache/cached-rows.ts";
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
import { lightHandlers } from "../registry/light-handlers.ts";
import { proofProblems } from "../registry/option-problems.ts";
import { usesMessages } from "../registry/registry.ts";
import { routed } from "../registry/routes.ts";
import { clientLogHandler } from "../routes/client-log.ts";
import { healthHandlers } from "../routes/health.ts";
import { openApiHandlers } from "../routes/openapi.ts";
import type { Adapters, ParameterReader } from "../runtime/adapters.ts";
import { createRequestIds } from "../runtime/request-id.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createBootParameterLoader, readKeyRing } from "./boot-parameters.ts";
import { createLifecycle } from "./runtime-lifecycle.ts";
import type { RuntimeOptions } from "./runtime-options.ts";
import { type Server, serverInternals } from "./server.ts";

/** Maximum time that a write waits for its concurrent duplicate, in milliseconds. */
const defaultWaitMs = 10_000;

/** Binds a server to its host. */
export function createRuntime(server: Server, options: RuntimeOptions): Runtime {
  const state = serverInternals(server);
  const { variables, clock = systemClock, environment = state.environment } = options;
  const prefix = state.options.dynamodb?.prefix ?? "keelson";
  const secret = variables["KEELSON_AUTH_SECRET"] || options.developmentSecret;
  const auth =
    options.auth ?? state.options.auth ?? (secret === undefined ? undefined : { secret });
  if (auth?.secret !== undefined && auth.secret === secret) requireSoundSecret(auth);
  if (environment === "production" && variables["POWERTOOLS_IDEMPOTENCY_DISABLED"]) {
    throw new Error(
      "POWERTOOLS_IDEMPOTENCY_DISABLED is set: writes would be done again; unset it in production",
    );
  }
  const lifecycle = createLifecycle();
  // In production, and in Lambda, the development secret never seals data.
  const isLocal =
    environment !== "production" && variables["AWS_LAMBDA_FUNCTION_NAME"] === undefined;
  const bootParameters = createBootParameterLoader(state, clock, isLocal ? secret : undefined);
  const { keyRing } = state.options;
  const secrets = createSecrets({
    load: keyRing === undefined ? undefined : () => loadKeyRing(keyRing.parameter),
    clock,
    onFailure: (error) => {
      const { data } = describeError(error, { requestId: "", environment }).log;
      runtime.log.error("config.key_ring_failed", data);
    },
  });
  const { metrics, missing } = options.measuring ?? {};
  let beginning: Promise<Adapters> | undefined;
  let opening: Promise<Adapters> | undefined;
  let routes: Runtime["routes"] | undefined;

  const log = createServerLogger({
    ...state.options.log,
    environment,
    env: variables,
    clock,
    powertoolsThreshold: options.powertools,
    keep: options.keepRecord,
    ...(options.write === undefined ? {} : { write: options.write }),
  });
  if (missing !== undefined) log.warn("metrics.unavailable", { fix: `npm install ${missing}` });
  const tracing = isTracerRegistered()
    ? lazy(async () => (await import("../observe/tracing.ts")).createTracing())
    : undefined;
  const channels = new Map([
    ...builtInChannels(
      options.webhook === undefined ? state.options.delivery : { webhook: options.webhook },
      undefined,
      tracing,
    ),
    ...state.registry.channels,
  ]);
  const runtime: { -readonly [Name in keyof Runtime]: Runtime[Name] } = {
    server: state,
    environment,
    variables,
    clock,
    log,
    // Created at first access: a function for a single handler never uses the routes.
    get routes() {
      routes ??= createRouteTable(routed(allHandlers()));
      return routes;
    },
    resolver: createConfigResolver({ appOverrides: state.options.config ?? {} }),
    configRows: createCachedRows({
      ...cacheSettings(state.options.cache, options.isFrozenBetweenEvents === true),
      reader: {
        read: async (...parameters) => {
          const { configRows } = await runtime.lightAdapters();
          if (tracing === undefined) return configRows.read(...parameters);
          return (await tracing.open()).around("config fetch", () =>
            configRows.read(...parameters),
          );
        },
      },
      keyGroups: groupKeys(state.registry.configKeys.values()),
      clock,
      metrics,
    }),
    secrets,
    cipher: createRowCipher(secrets, () => runtime.tableName(configTable.name), {
      bindVersion: keyRing?.bindVersion,
    }),
    authenticator: createAuthenticator({ auth, clock }),
    verifiesTokens: auth !== undefined,
    refusalOfHeaders: createHeaderCheck(),
    bodyLimitBytes: bodyLimit(state.options.limits),
    tableName: tableNames(prefix, variables),
    newRequestId: createRequestIds(clock),
    // The log lines of a run are written before its span ends.
    observer: observers(
      observers(
        createRunLines({ requests: state.options.log?.requests, clock, variables }),
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
      (await import("../runtime/projections.ts")).createProjections({
        projections: state.registry.projections,
        store: async () => (await runtime.adapters()).projections.open(),
        clock,
      }),
    ),
    inFlight: new Map(),
    reportedErrors: new Set(),
    channels,
    deliveryJob: createDeliveryJob(channels),
    lifecycle,
    light: lightHandlers(state),
    openedLight: undefined,
    lightAdapters: () => {
      beginning ??= open().then(
        (adapters) => {
          runtime.openedLight = adapters;
          return adapters;
        },
        (error: unknown) => {
          beginning = undefined;
          throw error;
        },
      );
      return beginning;
    },
    opened: undefined,
    adapters: () => {
      opening ??= runtime
        .lightAdapters()
        .then(loaded)
        .catch((error: unknown) => {
          opening = undefined;
          throw error;
        });
      return opening;
    },
    openedRuns: undefined,
    runs: async () => runtime.openedRuns ?? openRuns(),
    close: async () => {
      if (state.bound === bound) state.bound = undefined;
      metrics?.close?.();
      if (beginning === undefined) return;
      const adapters = await beginning;
      runtime.openedRuns = undefined;
      runtime.opened = undefined;
      runtime.openedLight = undefined;
      opening = undefined;
      beginning = undefined;
      await adapters.close();
    },
  };
  const bound = async (): Promise<Runtime> => runtime;
  const open = async () => {
    bootParameters.assertDue();
    const adapters = await options.openAdapters(runtime);
    try {
      const askedMs = clock.now();
      const { overrides, keyRing: ring } = await bootParameters.load(adapters.parameters);
      runtime.resolver = createConfigResolver({ appOverrides: overrides });
      state.resolver = runtime.resolver;
      const problems = proofProblems(state.options, ring !== undefined);
      if (problems.length > 0) throw new BootError(problems);
      secrets.begin(ring, askedMs);
      if (ring === undefined) warnOfSecrets();
    } catch (error) {
      await adapters.close();
      throw error;
    }
    return adapters;
  };
  const loaded = async (adapters: Adapters) => {
    await adapters.load?.();
    runtime.opened = adapters;
    return adapters;
  };
  const openRuns = async () => {
    const { createRunServices } = await import("../runtime/run-services.ts");
    const adapters = await runtime.adapters();
    const { draining } = lifecycle;
    const waitMs = state.options.once?.waitMs ?? defaultWaitMs;
    runtime.openedRuns ??= createRunServices({
      adapters,
      log,
      hasJobs: usesMessages(state.registry),
      clock,
      metrics,
      tracing,
      waitMs,
      draining,
      ...(options.schedule && { schedule: options.schedule }),
    });
    return runtime.openedRuns;
  };
  const loadKeyRing = async (parameter: string) => {
    const { parameters } = await runtime.adapters();
    // Safe: a server that names a key ring has a parameter reader.
    const read = await readKeyRing(
      parameters as ParameterReader,
      parameter,
      isLocal ? secret : undefined,
    );
    if ("problem" in read) throw new BootError([read.problem]);
    return read.keyRing;
  };
  const warnOfSecrets = () => {
    const keys = [...state.registry.configKeys.values()].flatMap(({ id, definition }) =>
      definition.encrypted ? [id] : [],
    );
    if (keys.length > 0) runtime.log.warn("config.no_key_ring", { keys });
  };
  state.bound = bound;
  state.ready = async () => void (await runtime.adapters());
  const allHandlers = () => [
    ...state.registry.handlers.values(),
    ...healthHandlers(runtime),
    ...metricsPage(runtime),
    clientLogHandler(runtime),
    ...configHandlers(runtime.server.registry),
    ...openApiHandlers(runtime.server, environment),
  ];
  return runtime;
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
