import { keptEventsTable, type TableDeclaration } from "../../app/handlers/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { handlerRunners, type Reach, type Runner, reachOf } from "../../app/registry/reach.ts";
import type { Registry } from "../../app/registry/registry.ts";
import { type RoutedHandler, routed } from "../../app/registry/routes.ts";
import type { Needs } from "./needs.ts";

/** One function for all routes, or one per handler with a route. */
export type Shape = "one" | "each";

/** Work beyond the tables of features, each kind with its own permissions. */
export type Duty =
  | "read-config"
  | "operate-config"
  | "rename-config"
  | "claim"
  | "steps"
  | "publish"
  | "keep-events"
  | "read-events"
  | "enqueue"
  | "consume"
  | "read-stream"
  | "sweep-outbox"
  | "later"
  | "send-due";

export interface NeededFunction {
  /**
   * Export name and suffix of the function's name: `http`, or `filesFileCreate` for
   * `files.file.create`.
   */
  readonly name: string;
  readonly calledBy: "requests" | "queues" | "stream" | "minute";
  readonly timeoutSeconds: number;
  /** `GET /files/{id}`, or `$default` for requests that match no other route. */
  readonly routes: readonly string[];
  readonly duties: ReadonlySet<Duty>;
  readonly tables: readonly ReachedTable[];
}

export interface ReachedTable {
  readonly table: TableDeclaration;
  readonly reach: Reach;
}

/** Shorter than the API's 30 s, so that keelson sends the response on a timeout. */
const requestTimeoutSeconds = 20;
/**
 * Timeout of the function that consumes a batch, in seconds. Its queues hide a message for six
 * times as long.
 */
export const queueTimeoutSeconds = 30;
const streamTimeoutSeconds = 30;
const sweepTimeoutSeconds = 60;
/**
 * Long enough for a report. Schedules that become due in the meantime start in another invocation.
 */
const scheduleTimeoutSeconds = 300;

/** Derives duties and tables from declarations. @throws Error if a handler's name is too long. */
export function functionsOf(server: DeclaredServer, needs: Needs, shape: Shape): NeededFunction[] {
  const { registry } = server;
  return [
    ...(shape === "each"
      ? routed(registry.handlers.values()).map((one) => handlerFunction(server, needs, one))
      : []),
    httpFunction(registry, needs, shape),
    ...queueFunctions(registry, needs),
    ...outboxFunctions(needs),
    ...scheduleFunctions(registry, needs),
  ];
}

function handlerFunction(
  { registry, options }: DeclaredServer,
  needs: Needs,
  { route, target }: RoutedHandler,
): NeededFunction {
  const isQuery = target.kind === "query";
  const path = route.segments
    .map((segment) => ("static" in segment ? `/${segment.static}` : `/{${segment.param}}`))
    .join("");
  // The function of a query also answers HEAD, because the function for all routes may lack the
  // permissions.
  const methods = isQuery ? [route.method, "HEAD"] : [route.method];
  return {
    name: functionName(target.name),
    calledBy: "requests",
    timeoutSeconds: requestTimeoutSeconds,
    routes: methods.map(
      (method) => `${method} ${options.basePath ?? ""}${path || (options.basePath ? "" : "/")}`,
    ),
    duties: new Set([
      ...configDuties(registry),
      ...(isQuery ? readingDuties(needs) : effectDuties(needs)),
    ]),
    tables: reachedTables(registry, handlerRunners(registry, target)),
  };
}

function httpFunction(registry: Registry, needs: Needs, shape: Shape): NeededFunction {
  const handlers = shape === "one" ? [...registry.handlers.values()] : [];
  const operates: Duty[] = registry.configKeys.size > 0 ? ["operate-config", "claim"] : [];
  if ([...registry.configKeys.values()].some(({ definition }) => definition.formerly !== undefined))
    operates.push("rename-config");
  const writes = handlers.some(({ kind }) => kind === "write");
  return {
    name: "http",
    calledBy: "requests",
    timeoutSeconds: requestTimeoutSeconds,
    routes: ["$default"],
    duties: new Set([
      ...configDuties(registry),
      ...operates,
      ...(handlers.length > 0 ? readingDuties(needs) : []),
      ...(writes ? effectDuties(needs) : []),
    ]),
    tables: reachedTables(
      registry,
      handlers.flatMap((handler) => handlerRunners(registry, handler)),
    ),
  };
}

function queueFunctions(registry: Registry, needs: Needs): NeededFunction[] {
  if (needs.events === undefined && needs.jobs === undefined) return [];
  const { consumers, jobs } = registry;
  const channels = registry.features
    .filter((feature) => feature.channels.length > 0)
    .map(({ name }) => ({ feature: name }));
  return [
    {
      name: "queue",
      calledBy: "queues",
      timeoutSeconds: queueTimeoutSeconds,
      routes: [],
      duties: new Set([...configDuties(registry), ...effectDuties(needs), "consume"]),
      tables: reachedTables(
        registry,
        [...consumers.values(), ...jobs.values(), ...channels].map(({ feature }) => ({
          feature,
          isQuery: false,
        })),
      ),
    },
  ];
}

function outboxFunctions({ bus, jobs }: Needs): NeededFunction[] {
  const common = { routes: [], tables: [] };
  // A claim ensures that only one invocation dispatches a shard at a time.
  const duties: Duty[] = ["claim", ...(bus === undefined ? [] : ["sweep-outbox" as const])];
  const stream: NeededFunction = {
    ...common,
    name: "stream",
    calledBy: "stream",
    timeoutSeconds: streamTimeoutSeconds,
    duties: new Set<Duty>([...duties, "read-stream"]),
  };
  const sweep: NeededFunction = {
    ...common,
    name: "sweep",
    calledBy: "minute",
    timeoutSeconds: sweepTimeoutSeconds,
    duties: new Set<Duty>([...duties, "send-due"]),
  };
  return [...(bus === undefined ? [] : [stream]), ...(jobs === undefined ? [] : [sweep])];
}

function scheduleFunctions(registry: Registry, needs: Needs): NeededFunction[] {
  const schedules = [...registry.schedules.values()];
  if (schedules.length === 0) return [];
  return [
    {
      name: "schedule",
      calledBy: "minute",
      timeoutSeconds: scheduleTimeoutSeconds,
      routes: [],
      duties: new Set([...configDuties(registry), ...effectDuties(needs)]),
      tables: reachedTables(
        registry,
        schedules.map(({ feature }) => ({ feature, isQuery: false })),
      ),
    },
  ];
}

/** Without declared keys, a server does not read configuration. */
function configDuties({ configKeys }: Registry): Duty[] {
  return configKeys.size > 0 ? ["read-config"] : [];
}

/** Any handler may read kept events and the active version of a projection. */
function readingDuties(needs: Needs): Duty[] {
  return keepsEvents(needs) ? ["read-events"] : [];
}

function effectDuties(needs: Needs): Duty[] {
  return [
    "claim",
    "steps",
    ...(needs.bus === undefined ? [] : ["publish" as const]),
    ...(needs.jobs === undefined ? [] : ["later" as const]),
    ...(keepsEvents(needs) ? ["keep-events" as const, "read-events" as const] : []),
    ...(needs.jobs === undefined ? [] : ["enqueue" as const]),
  ];
}

function keepsEvents({ tables }: Needs): boolean {
  return tables.some(({ name }) => name === keptEventsTable.name);
}

/** Includes features that they use, each with the widest access needed. */
function reachedTables(registry: Registry, runners: readonly Runner[]): ReachedTable[] {
  const most = reachOf(registry, runners);
  return registry.features.flatMap(({ name, tables }) => {
    const reach = most.get(name);
    return reach === undefined ? [] : tables.map((table) => ({ table, reach }));
  });
}

/** Leaves room for stage and application: a function name has at most 64 characters. */
const longestName = 40;

export function exportName(handler: string): string {
  return handler.replaceAll(/[.-]+(.)/g, (_whole, letter: string) => letter.toUpperCase());
}

function functionName(handler: string): string {
  const name = exportName(handler);
  if (name.length <= longestName) return name;
  throw new Error(
    `the function of ${handler} would be ${name}, which is longer than ${longestName} characters; rename the handler, or use --shape one`,
  );
}
