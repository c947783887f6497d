import type { HandlerDeclaration } from "../../app/handlers/handler.ts";
import { keptEventsTable, type TableDeclaration } from "../../app/handlers/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { isRateLimited } from "../../app/registry/expected-code.ts";
import { handlerRunners, type Reach, type Runner, reachOf } from "../../app/registry/reach.ts";
import { type Registry, type RoutedHandler, routed } from "../../app/registry/registry.ts";
import { type Needs, queuesOf } from "./needs.ts";

/** One function for all routes, or one per handler with a route. */
export type Shape = "one" | "each";

/** Work that needs permissions beyond the tables of features. */
export type Duty =
  | "read-config"
  | "operate-config"
  | "rename-config"
  | "identify-api-keys"
  | "manage-api-keys"
  | "read-tenants"
  | "claim"
  | "take-rates"
  | "read-usage"
  | "steps"
  | "publish"
  | "keep-events"
  | "read-events"
  | "enqueue"
  | "consume"
  | "wait"
  | "read-stream"
  | "sweep-outbox"
  | "later"
  | "send-due";

export interface NeededFunction {
  /** Also the name of the export: `http`, or `filesFileCreate` for `files.file.create`. */
  readonly name: string;
  readonly calledBy: "requests" | "queues" | "stream" | "minute";
  readonly timeoutSeconds: number;
  /** `GET /files/{id}`, or `$default` for requests that match no other route. */
  readonly routes: readonly string[];
  readonly duties: ReadonlySet<Duty>;
  readonly tables: readonly { readonly table: TableDeclaration; readonly reach: Reach }[];
}

/** Shorter than the API's 30 s, so that keelson sends the response on a timeout. */
const ofRequests = { calledBy: "requests", timeoutSeconds: 20 } as const;
/** Timeout for a batch, in seconds. Queues hide a message for six times as long. */
export const queueTimeoutSeconds = 30;
const ofQueues = { calledBy: "queues", timeoutSeconds: queueTimeoutSeconds } as const;
const ofStream = { calledBy: "stream", timeoutSeconds: 30 } as const;
const ofSweep = { calledBy: "minute", timeoutSeconds: 60 } as const;
/** Long enough for a report. Schedules that become due in the meantime start in another invocation. */
const ofSchedules = { calledBy: "minute", timeoutSeconds: 300 } as const;

/** @throws Error if a handler's name is too long. */
export function functionsOf(server: DeclaredServer, needs: Needs, shape: Shape): NeededFunction[] {
  const { registry } = server;
  const { consumers, jobs, receivers, schedules, features } = registry;
  const consuming = [
    ...[...consumers.values(), ...jobs.values(), ...receivers.values()].map(
      ({ feature }) => feature,
    ),
    ...features.filter(({ channels }) => channels.length > 0).map(({ name }) => name),
  ];
  const waits: Duty[] = consumers.size + receivers.size > 0 ? ["wait"] : [];
  const firing = [...schedules.values()].map(({ feature }) => feature);
  return [
    ...(shape === "each"
      ? routed(registry.handlers.values()).map((one) => handlerFunction(server, needs, one))
      : []),
    httpFunction(server, needs, shape),
    ...(queuesOf(needs).length === 0
      ? []
      : [
          {
            name: "queue",
            ...ofQueues,
            ...effects(registry, needs, consuming, "consume", ...waits, ...tenantDuties(server)),
          },
        ]),
    ...outboxFunctions(needs),
    ...(firing.length === 0
      ? []
      : [
          {
            name: "schedule",
            ...ofSchedules,
            ...effects(registry, needs, firing, ...tenantDuties(server)),
          },
        ]),
  ];
}

function handlerFunction(
  server: DeclaredServer,
  needs: Needs,
  { route, target }: RoutedHandler,
): NeededFunction {
  const { registry, options } = server;
  const isQuery = target.kind === "query";
  const segments = route.segments.map((segment) =>
    "static" in segment ? `/${segment.static}` : `/{${segment.param}}`,
  );
  const path = [options.basePath, ...segments].join("") || "/";
  // HEAD, because the function for all routes may lack permissions.
  const methods = isQuery ? [route.method, "HEAD"] : [route.method];
  return {
    name: functionName(target.name),
    ...ofRequests,
    routes: methods.map((method) => `${method} ${path}`),
    duties: new Set([
      ...configDuties(registry),
      ...(options.auth?.apiKeys ? identifies : []),
      ...tenantDuties(server),
      ...rateDuties(server, [target]),
      ...(isQuery ? readingDuties(needs) : effectDuties(needs)),
    ]),
    tables: reachedTables(registry, handlerRunners(registry, target)),
  };
}

function httpFunction(server: DeclaredServer, needs: Needs, shape: Shape): NeededFunction {
  const { registry, options } = server;
  const handlers = shape === "one" ? [...registry.handlers.values()] : [];
  const keys = [...registry.configKeys.values()];
  const operates: Duty[] = keys.length > 0 ? ["operate-config", "claim"] : [];
  if (keys.some(({ definition }) => definition.formerly)) operates.push("rename-config");
  if (options.auth?.apiKeys) operates.push(...identifies, "manage-api-keys", "claim");
  const writes = handlers.some(({ kind }) => kind === "write");
  return {
    name: "http",
    ...ofRequests,
    routes: ["$default"],
    duties: new Set([
      ...configDuties(registry),
      ...operates,
      ...tenantDuties(server),
      ...rateDuties(server, handlers),
      ...(handlers.length > 0 ? readingDuties(needs) : []),
      ...(writes ? effectDuties(needs) : []),
    ]),
    tables: reachedTables(
      registry,
      handlers.flatMap((one) => handlerRunners(registry, one)),
    ),
  };
}

function outboxFunctions({ bus, jobs }: Needs): NeededFunction[] {
  // A claim ensures that only one invocation dispatches a shard at a time.
  const duties: Duty[] = ["claim", ...(bus === undefined ? [] : ["sweep-outbox" as const])];
  const outboxFunction = (name: string, duty: Duty, more: typeof ofStream | typeof ofSweep) => ({
    name,
    ...more,
    routes: [],
    duties: new Set([...duties, duty]),
    tables: [],
  });
  return [
    ...(bus === undefined ? [] : [outboxFunction("stream", "read-stream", ofStream)]),
    ...(jobs === undefined ? [] : [outboxFunction("sweep", "send-due", ofSweep)]),
  ];
}

function effects(
  registry: Registry,
  needs: Needs,
  features: readonly string[],
  ...more: readonly Duty[]
): Pick<NeededFunction, "routes" | "duties" | "tables"> {
  return {
    routes: [],
    duties: new Set([...configDuties(registry), ...effectDuties(needs), ...more]),
    tables: reachedTables(registry, features.map(runnerOf)),
  };
}

const identifies: readonly Duty[] = ["identify-api-keys"];

const runnerOf = (feature: string): Runner => ({ feature, isQuery: false });

function configDuties({ configKeys }: Registry): Duty[] {
  return configKeys.size > 0 ? ["read-config"] : [];
}

/** Every request checks its tenant, and any handler may list tenants. */
function tenantDuties({ options }: DeclaredServer): Duty[] {
  return options.tenants === true ? ["read-tenants"] : [];
}

/** Any handler may take from a declared limit. */
function rateDuties(server: DeclaredServer, handlers: readonly HandlerDeclaration[]): Duty[] {
  const { rateLimits } = server.registry;
  const takes = rateLimits.size > 0 || handlers.some((handler) => isRateLimited(handler, server));
  return handlers.length > 0 && takes ? ["take-rates"] : [];
}

/** Any handler may read usage, kept events and the active version of a projection. */
function readingDuties({ tables, hasQuotas }: Needs): Duty[] {
  return [
    ...(tables.some(({ name }) => name === keptEventsTable.name) ? ["read-events" as const] : []),
    ...(hasQuotas ? ["read-usage" as const] : []),
  ];
}

function effectDuties(needs: Needs): Duty[] {
  const reading = readingDuties(needs);
  const hasJobs = needs.jobs !== undefined;
  return [
    "claim",
    "steps",
    ...(needs.bus === undefined ? [] : ["publish" as const]),
    ...(hasJobs ? ["later" as const] : []),
    ...(reading.includes("read-events") ? ["keep-events" as const] : []),
    ...reading,
    ...(hasJobs ? ["enqueue" as const] : []),
  ];
}

function reachedTables(registry: Registry, runners: readonly Runner[]): NeededFunction["tables"] {
  const most = reachOf(registry, runners);
  return registry.features.flatMap(({ name, tables }) => {
    const reach = most.get(name);
    return reach === undefined ? [] : tables.map((table) => ({ table, reach }));
  });
}

/** Leaves room for stage and application: function names have at most 64 characters. */
const longestName = 40;

export function exportName(handler: string) {
  return handler.replaceAll(/[.-]+(.)/g, (_whole, letter: string) => letter.toUpperCase());
}

function functionName(handler: string) {
  const name = exportName(handler);
  if (name.length <= longestName) return name;
  throw new Error(
    `the function of ${handler} would be ${name}, which is longer than ${longestName} characters; rename the handler, or use --shape one`,
  );
}
