import { BootError, type BootProblem } from "../../base/errors/boot.ts";
import { placed } from "../../base/errors/call-site.ts";
import { environmentOf } from "../../base/process/environment.ts";
import { lazy } from "../../base/process/lazy.ts";
import { eventFunctionName } from "../../base/process/platform.ts";
import { appOverrideProblems } from "../../parts/config/declare/app-overrides.ts";
import { configKeyProblems, keyNames } from "../../parts/config/declare/validators.ts";
import type { ConfigResolver } from "../../parts/config/read/resolver.ts";
import { bodyProblems } from "../../parts/http/limits.ts";
import { conflicts } from "../../parts/http/route.ts";
import type { Tenants } from "../../parts/tenant-registry/tenant.ts";
import type { Feature } from "../features/feature.ts";
import { useProblems } from "../features/uses.ts";
import type { StepResult } from "../handlers/effect-options.ts";
import type { Awaitable } from "../handlers/handler.ts";
import { hookProblems } from "../handlers/hooks.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { receiverProblems } from "../handlers/receiver.ts";
import type { Closer, DeclaredServer, ReadyCheck } from "../registry/declared-server.ts";
import { optionProblems, proofProblems } from "../registry/option-problems.ts";
import type { RunOptions, ServerOptions } from "../registry/options.ts";
import {
  createRegistry,
  messageProblems,
  type Registry,
  type RoutedHandler,
  routed,
  serverProblem,
} from "../registry/registry.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { tenantProblems, timeZoneProblems } from "../schedules/schedule.ts";
import { keyProblems } from "./key-problems.ts";

const internals = Symbol.for("keelson.server");

/** Result of `server.run`: with a request ID its JSON round trip, because a repeated run returns it too. */
export type RunResult<Result, RequestId> = [RequestId] extends [undefined]
  ? Result
  : StepResult<Result>;

/** A server with validated features and options. Hosts open its connections. */
export interface Server {
  /** Declarations of the features. */
  readonly registry: Registry;
  /**
   * Resolves once the server can handle requests: the adapters are open, and the overrides from SSM
   * and the key ring are loaded.
   * Hosts await it. Tests and Lambda modules may await it after creating a host.
   *
   * @throws FrameworkError `config_unavailable` (503) if SSM cannot be read or has invalid
   * parameters. Error if the server uses SSM and no host was created for it.
   */
  ready(): Promise<void>;
  /**
   * Resolver with the app-boot overrides, including those from SSM (specification 2.2), while
   * `createConfigResolver` knows only the overrides that it receives.
   *
   * @throws Error, from its functions, before `ready()` has loaded the overrides.
   * @example
   * const { value, source } = await server.resolver.getWithSource(handle.id, handle.definition, "acme", "ann", ctx.db);
   */
  readonly resolver: Pick<ConfigResolver, "getWithSource" | "override">;
  /**
   * Registers a resource to close at shutdown. Resources close in reverse order of registration.
   *
   * @throws Error after a host has started.
   */
  onClose(name: string, close: Closer): void;
  /**
   * Registers a check that `/health/ready` runs.
   *
   * @throws Error after a host has started.
   */
  onReadyCheck(name: string, check: ReadyCheck): void;
  /**
   * Runs `work` without a request: for scripts, boot tasks and a REPL. The `ctx` has all members,
   * and its events and jobs are sent. The run belongs to the system unless `tenantId` is set. It
   * uses the resources of this process's host, or else connects like a container.
   *
   * @returns the return value of `work`, or the result passed to `ctx.commit`. With `requestId`,
   * its JSON round trip.
   * @throws any error of `work`. TypeError for invalid options. Error while the server closes.
   * FrameworkError `request_in_progress` (409) while a run with the same `requestId` takes longer
   * than `once.waitMs`; `tenant_suspended` (403) for a suspended tenant.
   * @example
   * await server.run({ reason: "import of 2026-11", tenantId: "acme" }, (ctx) => ctx.publish("file.imported", { id }));
   * await server.close();
   */
  run<Result, RequestId extends string | undefined = undefined>(
    options: RunOptions & { readonly requestId?: RequestId },
    work: (ctx: PipelineContext) => Awaitable<Result>,
  ): Promise<RunResult<Result, RequestId>>;
  /**
   * Registered tenants, with `tenants: true`. Uses the resources that `run` uses.
   *
   * @throws Error, from its functions, without `tenants: true`, and while the server closes.
   * @example
   * await server.tenants.create({ id: "acme", timeZone: "Europe/Berlin" });
   */
  readonly tenants: Tenants;
  /**
   * Waits at most `shutdown.drainMs` for the runs that `run` started, and closes the resources that
   * `run` opened, including those registered with `onClose`. `ctx.signal` aborts up to a second
   * before the limit. A host closes the resources that it opened.
   */
  close(): Promise<void>;
  /** @internal */
  readonly [internals]: ServerInternals;
}

export interface ServerInternals extends DeclaredServer {
  started: boolean;
  /** Runtime that the Lambda handlers of one process share. */
  runtime: Runtime | undefined;
  /** Returns the runtime that a host bound last. Absent once that runtime is closed. */
  bound: (() => Promise<Runtime>) | undefined;
  /** Opens the adapters of the runtime that was bound last. */
  ready: (() => Promise<void>) | undefined;
  /** Resolver of the runtime that was opened last, with the overrides of SSM. */
  resolver: ConfigResolver | undefined;
}

/**
 * Binds a server in a process without a host.
 *
 * @param noHost - creates the error of a process that cannot.
 */
export type BindAlone = (server: Server, noHost: (cause?: unknown) => Error) => Promise<Runtime>;

/**
 * Builds a server.
 *
 * @param bindAlone - for `server.run` in a process without a host. Default: such a run fails.
 * @throws BootError with every problem.
 */
export function buildServer<const Features extends readonly Feature[]>(
  options: ServerOptions<Features>,
  bindAlone: BindAlone = (_server, noHost) => Promise.reject(noHost()),
): Server {
  const registry = createRegistry(options?.features, options?.delivery);
  const environment = options?.environment ?? environmentOf(process.env);
  const keys = [...registry.configKeys.values()];
  const namesOfKeys = keyNames(keys);
  const problems = [
    ...optionProblems(options),
    ...registry.problems,
    ...messageProblems(registry),
    ...receiverProblems(registry.receivers.values(), options?.dynamodb?.prefix),
    ...(eventFunctionName(process.env) === undefined
      ? timeZoneProblems(registry.schedules.values())
      : []),
    ...tenantProblems(registry.schedules.values(), options?.tenants),
    ...useProblems(registry.features),
    ...hookProblems(registry),
    ...keyProblems(registry, options),
    ...bodyProblems(registry.handlers.values(), options?.limits),
    // Not required elsewhere, where the development secret replaces a missing key ring.
    ...(environment === "production" ? proofProblems(options, options?.keyRing !== undefined) : []),
    ...keys.flatMap((key) => configKeyProblems(key, namesOfKeys)),
    ...appOverrideProblems(registry, options?.config ?? {}),
    ...routeConflicts(routed(registry.handlers.values())),
  ];
  if (registry.features.some(({ name }) => name === "keelson")) {
    const message = "a feature is called keelson";
    problems.push(serverProblem("keelson", "feature-reserved", message, "choose another name"));
  }
  if (problems.length > 0) throw new BootError(placed(problems));

  const closers = new Map<string, Closer>();
  const checks = new Map<string, ReadyCheck>();
  const state: ServerInternals = {
    // Frozen, because a host may bind much later, when changed options would not be validated.
    options: Object.freeze({
      ...options,
      ...(options.config && { config: frozen(options.config) }),
      ...(options.cors && { cors: frozen(options.cors) }),
    }),
    environment,
    registry,
    closers,
    checks,
    started: false,
    runtime: undefined,
    bound: undefined,
    ready: undefined,
    resolver: undefined,
  };
  const resolver = (): ConfigResolver => {
    if (state.resolver !== undefined) return state.resolver;
    throw new Error(
      "server.resolver: the overrides are not loaded; make a host, and await server.ready() or use it in a handler",
    );
  };
  const register =
    <Item>(what: string, items: Map<string, Item>) =>
    (name: string, item: Item) => {
      const wrong = state.started
        ? "a host has started already; register before runContainer or the first event"
        : items.has(name) && "the name is taken; choose another";
      if (wrong) throw new Error(`${what}("${name}"): ${wrong}`);
      items.set(name, item);
    };
  const runs = lazy(async () =>
    (await import("./server-runs.ts")).createServerRuns({
      shutdown: options.shutdown,
      bound: () => state.bound?.(),
      bindAlone: (noHost) => bindAlone(server, noHost),
    }),
  );
  const server: Server = Object.freeze({
    registry,
    // Safe cast: with a request ID, `run` returns the JSON round trip.
    run: async (runOptions, work) => (await runs.open()).run(runOptions, work) as never,
    close: async () => (await runs.opening)?.close(),
    tenants: tenantsBy(async () => (await runs.open()).tenants()),
    ready: async () => {
      if (state.ready !== undefined) return state.ready();
      if (options.ssm !== undefined || options.keyRing !== undefined) {
        throw new Error(
          "ready(): no host has set the endpoint of SSM; first create one, such as lambdaHttp or runContainer",
        );
      }
    },
    resolver: Object.freeze<Server["resolver"]>({
      getWithSource: async (...given) => resolver().getWithSource(...given),
      override: (id) => resolver().override(id),
    }),
    onClose: register("onClose", closers),
    onReadyCheck: register("onReadyCheck", checks),
    [internals]: state,
  } satisfies Server);
  return server;
}

function tenantsBy(open: () => Promise<Tenants>): Tenants {
  return Object.freeze<Tenants>({
    create: async (...given) => (await open()).create(...given),
    get: async (...given) => (await open()).get(...given),
    list: async (...given) => (await open()).list(...given),
    suspend: async (...given) => (await open()).suspend(...given),
    resume: async (...given) => (await open()).resume(...given),
  });
}

/** @throws TypeError if `buildServer` did not create the server. */
export function serverInternals(server: Server): ServerInternals {
  const state = (server as Partial<Server> | undefined)?.[internals];
  if (state === undefined)
    throw new TypeError("this is not a server; pass what buildServer returns");
  return state;
}

/** Copies options with their lists, and freezes all of them. */
function frozen<Options extends object>(options: Options): Options {
  const members = Object.entries(options).map(([name, value]: [string, unknown]) => [
    name,
    Array.isArray(value) ? Object.freeze([...value]) : value,
  ]);
  // Safe cast: the members are copies of the given ones.
  return Object.freeze(Object.fromEntries(members)) as Options;
}

function routeConflicts(routes: readonly RoutedHandler[]): BootProblem[] {
  return conflicts(routes).map(({ first, second }) => ({
    feature: second.target.feature,
    key: second.target.name,
    rule: "route-conflict",
    message: `route ${second.target.route} answers the same requests as ${first.target.route} of ${first.target.name}`,
    fix: "change one of the two routes",
  }));
}
