import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { HandlerDeclaration } from "../../app/handlers/handler.ts";
import { isNothing, takesNothing } from "../../app/openapi/answers.ts";
import {
  createSchemaReader,
  type JsonSchema,
  type SchemaReader,
  type UnsaidSchema,
} from "../../app/openapi/json-schema.ts";
import { sentAsText } from "../../app/openapi/request-parts.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { type RoutedHandler, routed } from "../../app/registry/routes.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import { type LockedAccess, lockedAccess } from "./access-strictness.ts";
import { type LockedKey, lockedKey } from "./locked-keys.ts";

export const contractFormat = 1;

/** A server's promises to clients, consumers and stored settings. Plain JSON. */
export interface Contract {
  readonly format: typeof contractFormat;
  readonly routes: readonly LockedRoute[];
  readonly events: readonly LockedEvent[];
  readonly jobs: readonly LockedJob[];
  readonly channels: readonly LockedChannel[];
  readonly consumers: readonly LockedConsumer[];
  readonly schedules: readonly LockedSchedule[];
  readonly keys: readonly LockedKey[];
}

export interface LockedRoute {
  readonly method: string;
  readonly path: string;
  readonly handler: string;
  readonly access: LockedAccess;
  readonly body?: BodyKind;
  readonly key?: LockedKeyHeader;
  /** How long a retry gets the first response. */
  readonly keptSeconds?: number;
  readonly input?: JsonSchema;
  readonly output?: JsonSchema;
  readonly statuses?: readonly number[];
  readonly errors?: Readonly<Record<string, number>>;
}

/** `required`: a request without an `Idempotency-Key` gets a 400. */
export type LockedKeyHeader = "either" | "idempotency-key" | "none" | "required";

export interface LockedEvent {
  readonly type: string;
  /** Number of days for which the event is kept. */
  readonly kept?: number | "forever";
  readonly payload: JsonSchema;
}

export interface LockedJob {
  readonly name: string;
  readonly input: JsonSchema;
}

export interface LockedChannel {
  readonly name: string;
  readonly message: JsonSchema;
}

/** Consumer. Its name identifies the events that it has handled. */
export interface LockedConsumer {
  readonly name: string;
  readonly event: string;
}

export interface LockedSchedule {
  readonly name: string;
  readonly cron: string;
  readonly timeZone: string;
  readonly missed: string;
}

/** A contract, and the parts that JSON Schema cannot express. */
export interface ReadContract {
  readonly contract: Contract;
  readonly unsaid: readonly UnsaidSchema[];
}

export async function contractOf(server: DeclaredServer, from: string): Promise<ReadContract> {
  const reader = createSchemaReader({ from });
  const contract = await readContract(server, reader);
  const ofBytes = new Set(
    contract.routes
      .filter(({ body }) => body === "bytes")
      .map((route) => `${routeText(route)} input: body`),
  );
  return { contract, unsaid: reader.unsaid.filter(({ where }) => !ofBytes.has(where)) };
}

async function readContract(
  { registry, options }: DeclaredServer,
  reader: SchemaReader,
): Promise<Contract> {
  const routes = routed(registry.handlers.values());
  const basePath = options.basePath ?? "";
  const inputOf = (schema: StandardSchemaV1, where: string) => reader.read(schema, "input", where);
  return {
    format: contractFormat,
    routes: sorted(
      await Promise.all(
        routes.map((route) => lockedRoute(route, basePath, options.once?.key, reader)),
      ),
      ({ path, method }) => `${path} ${method}`,
    ),
    events: sorted(
      await Promise.all(
        [...registry.events.values()].map(async ({ type, keptDays, schema }) => ({
          type,
          ...(keptDays === undefined
            ? {}
            : { kept: Number.isFinite(keptDays) ? keptDays : ("forever" as const) }),
          payload: await inputOf(schema, `event ${type} payload`),
        })),
      ),
      ({ type }) => type,
    ),
    jobs: sorted(
      await Promise.all(
        [...registry.jobs.values()].map(async ({ name, input }) => ({
          name,
          input: await inputOf(input, `job ${name} input`),
        })),
      ),
      nameOf,
    ),
    channels: sorted(
      await Promise.all(
        [...registry.channels.values()].map(async ({ name, input }) => ({
          name,
          // Safe: channels declared by an application must have a schema.
          message: await inputOf(input as StandardSchemaV1, `channel ${name} message`),
        })),
      ),
      nameOf,
    ),
    consumers: sorted(
      [...registry.consumers.values()].map(({ name, type }) => ({ name, event: type })),
      nameOf,
    ),
    schedules: sorted(
      [...registry.schedules.values()].map(({ name, cron, timeZone, missed }) => ({
        name,
        cron,
        timeZone,
        missed,
      })),
      nameOf,
    ),
    keys: sorted([...registry.configKeys.values()].map(lockedKey), ({ id }) => id),
  };
}

export function routeText({ method, path }: Pick<LockedRoute, "method" | "path">): string {
  return `${method} ${path}`;
}

async function lockedRoute(
  { route, target }: RoutedHandler,
  basePath: string,
  serverKey: HandlerDeclaration["once"],
  reader: SchemaReader,
): Promise<LockedRoute> {
  const { input, output, access, kind, body, name, errors = {}, status } = target;
  const place = { method: route.method, path: `${basePath}${route.pattern}` };
  const where = routeText(place);
  const said =
    output === undefined ? undefined : await reader.read(output, "output", `${where} output`);
  const statuses =
    status ??
    (said !== undefined && !isNothing(said) && (await takesNothing(target))
      ? [200, 204]
      : undefined);
  return {
    ...place,
    handler: name,
    // Safe: a server rejects a route without a rule when it is built.
    access: lockedAccess(access as NonNullable<typeof access>),
    ...(kind === "write" ? { body, ...keyOf(target.once ?? serverKey ?? "either") } : {}),
    ...(input === undefined
      ? {}
      : { input: await reader.read(input, "input", `${where} input`, sentAsText(route, target)) }),
    ...(said === undefined ? {} : { output: said }),
    ...(statuses === undefined
      ? {}
      : { statuses: [...statuses].sort((one, other) => one - other) }),
    ...(Object.keys(errors).length === 0 ? {} : { errors }),
  };
}

function keyOf(
  once: NonNullable<HandlerDeclaration["once"]>,
): Pick<LockedRoute, "key" | "keptSeconds"> {
  if (typeof once === "object") return { key: "required", keptSeconds: once.keepSeconds ?? 300 };
  return { key: once === false ? "none" : once };
}

function sorted<Item>(items: readonly Item[], keyed: (item: Item) => string): readonly Item[] {
  return items.toSorted((one, other) => (keyed(one) < keyed(other) ? -1 : 1));
}

function nameOf({ name }: { readonly name: string }): string {
  return name;
}
