import { keptEventsTable, type TableDeclaration } from "../../app/features/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { handlerRunners, type Reach, type Runner, reachOf } from "../../app/registry/reach.ts";
import type { Registry } from "../../app/registry/registry.ts";
import { type RoutedHandler, routed } from "../../app/registry/routes.ts";
import type { Needs } from "./needs.ts";

/** One function for all routes, or one for each handler that has a route. */
export type Shape = "one" | "each";

/** What a function does beside the tables of features, each with permissions of its own. */
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

/** A Lambda function of a server. */
export interface NeededFunction {
  /** The name of its export, and the end of its own: `http`, or `filesFileCreate` for `files.file.create`. */
  readonly name: string;
  /** What calls it: the API, the queues, the outbox's stream, or a rule once a minute. */
  readonly calledBy: "requests" | "queues" | "stream" | "minute";
  readonly timeoutSeconds: number;
  /** Of the API: `GET /files/{id}`, and `$default` for whatever no other takes. */
  readonly routes: readonly string[];
  readonly duties: ReadonlySet<Duty>;
  /** The tables of features, in the order of their declaration. */
  readonly tables: readonly ReachedTable[];
}

/** A table of a feature, and how a function reaches it. */
export interface ReachedTable {
  readonly table: TableDeclaration;
  readonly reach: Reach;
}

/** Below the API's 30 s, so that the answer is keelson's. */
const requestTimeoutSeconds = 20;
/** How long the function may take that consumes a batch, in seconds. Its queues hide a message six times as long. */
export const queueTimeoutSeconds = 30;
const streamTimeoutSeconds = 30;
const sweepTimeoutSeconds = 60;
/** A report takes its time; what is due meanwhile begins in another run of the function. */
const scheduleTimeoutSeconds = 300;

/**
 * The functions of a server, each with what its handlers, consumers and jobs may need, by their declarations.
 *
 * @throws Error where the name of a handler is too long for one of a function.
 */
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

/** The function of one handler. */
function handlerFunction(
  { registry, options }: DeclaredServer,
  needs: Needs,
  { route, target }: RoutedHandler,
): NeededFunction {
  const isQuery = target.kind === "query";
  const path = route.segments
    .map((segment) => ("static" in segment ? `/${segment.static}` : `/{${segment.param}}`))
    .join("");
  const methods = isQuery ? [route.method, "HEAD"] : [route.method]; // of a query, which the function for all routes may not read
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

/** The function of all routes; in shape `each` those remain that every server has: health, browser logs, configuration. */
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

/** The function of consumers, jobs and channels. */
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

/**
 * The functions that dispatch what others have left in the outbox: at once, and what is older; the second also sends the deliveries,
 * and the jobs that are due. They run no handler.
 */
function outboxFunctions({ bus, jobs }: Needs): NeededFunction[] {
  const common = { routes: [], tables: [] };
  const duties: Duty[] = ["claim", ...(bus === undefined ? [] : ["sweep-outbox" as const])]; // one at a time dispatches a shard
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

/** The function of schedules, which looks every minute for what is due. */
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

/** What reads configuration: nothing is read where no key is declared. */
function configDuties({ configKeys }: Registry): Duty[] {
  return configKeys.size > 0 ? ["read-config"] : [];
}

/** What any handler may read: kept events, and which version of a projection is active. */
function readingDuties(needs: Needs): Duty[] {
  return keepsEvents(needs) ? ["read-events"] : [];
}

/** What a run does that may have effects. */
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

/** The tables of these features and of those that they use: the most that any of them asks for. */
function reachedTables(registry: Registry, runners: readonly Runner[]): ReachedTable[] {
  const most = reachOf(registry, runners);
  return registry.features.flatMap(({ name, tables }) => {
    const reach = most.get(name);
    return reach === undefined ? [] : tables.map((table) => ({ table, reach }));
  });
}

/** A function's name has 64 characters, and stage and application are to have some. */
const longestName = 40;

/** The export of one handler's function: `filesFileCreate` for `files.file.create`. */
export function exportName(handler: string): string {
  return handler.replaceAll(/[.-]+(.)/g, (_whole, letter: string) => letter.toUpperCase());
}

/** The name of one handler's function, which is that of its export. */
function functionName(handler: string): string {
  const name = exportName(handler);
  if (name.length <= longestName) return name;
  throw new Error(
    `the function of ${handler} would be ${name}, which is longer than ${longestName} characters; rename the handler, or use --shape one`,
  );
}
