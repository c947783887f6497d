import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { HandlerDeclaration } from "../../app/handlers/handler.ts";
import { isNothing, takesNothing } from "../../app/openapi/answers.ts";
import { sortedBy } from "../../app/openapi/canonical.ts";
import {
  createSchemaReader,
  type JsonSchema,
  type SchemaReader,
  type UnsaidSchema,
} from "../../app/openapi/json-schema.ts";
import { sentAsText } from "../../app/openapi/request-parts.ts";
import { defined } from "../../app/openapi/schema.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { type RoutedHandler, routed } from "../../app/registry/registry.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import { type LockedAccess, lockedAccess } from "./access-strictness.ts";
import { type LockedKey, lockedKey } from "./locked-keys.ts";

export const contractFormat = 1;

/** A server's guarantees to clients, consumers and stored settings, as plain JSON. */
export interface Contract {
  readonly format: typeof contractFormat;
  readonly routes: readonly LockedRoute[];
  readonly events: readonly LockedEvent[];
  readonly jobs: readonly { readonly name: string; readonly input: JsonSchema }[];
  readonly channels: readonly { readonly name: string; readonly message: JsonSchema }[];
  /** A consumer's name identifies the events that it has handled. */
  readonly consumers: readonly { readonly name: string; readonly event: string }[];
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
  /** Retention in days. */
  readonly kept?: number | "forever";
  readonly payload: JsonSchema;
}

export type LockedSchedule = Readonly<Record<"name" | "cron" | "timeZone" | "missed", string>>;

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
  const { basePath = "", once } = options;
  const inputOf = (schema: StandardSchemaV1, where: string) => reader.read(schema, "input", where);
  return {
    format: contractFormat,
    routes: await locked(
      routed(registry.handlers.values()),
      (route) => lockedRoute(route, basePath, once?.key, reader),
      ({ path, method }) => `${path} ${method}`,
    ),
    events: await locked(
      registry.events.values(),
      async ({ type, keptDays, schema }) =>
        defined({
          type,
          kept: keptDays === Number.POSITIVE_INFINITY ? ("forever" as const) : keptDays,
          payload: await inputOf(schema, `event ${type} payload`),
        }),
      ({ type }) => type,
    ),
    jobs: await locked(
      registry.jobs.values(),
      async ({ name, input }) => ({ name, input: await inputOf(input, `job ${name} input`) }),
      nameOf,
    ),
    channels: await locked(
      registry.channels.values(),
      async ({ name, input }) => ({
        name,
        // Safe cast: an application's channels must have a schema.
        message: await inputOf(input as StandardSchemaV1, `channel ${name} message`),
      }),
      nameOf,
    ),
    consumers: await locked(
      registry.consumers.values(),
      ({ name, type }) => ({ name, event: type }),
      nameOf,
    ),
    schedules: await locked(
      registry.schedules.values(),
      ({ name, cron, timeZone, missed }) => ({ name, cron, timeZone, missed }),
      nameOf,
    ),
    keys: await locked(registry.configKeys.values(), lockedKey, ({ id }) => id),
  };
}

async function locked<Declared, Entry>(
  declared: Iterable<Declared>,
  lock: (one: Declared) => Entry | Promise<Entry>,
  textOf: (entry: Entry) => string,
): Promise<readonly Entry[]> {
  return sortedBy(await Promise.all([...declared].map(lock)), textOf);
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
  const said = output && (await reader.read(output, "output", `${where} output`));
  const isOptional = said !== undefined && !isNothing(said) && (await takesNothing(target));
  return defined({
    ...place,
    handler: name,
    // Safe cast: a server with a route without a rule cannot be built.
    access: lockedAccess(access as NonNullable<typeof access>),
    ...(kind === "write" ? { body, ...keyOf(target.once ?? serverKey ?? "either") } : {}),
    input:
      input && (await reader.read(input, "input", `${where} input`, sentAsText(route, target))),
    output: said,
    statuses: (status ?? (isOptional ? [200, 204] : undefined))?.toSorted(
      (one, other) => one - other,
    ),
    errors: Object.keys(errors).length === 0 ? undefined : errors,
  });
}

function keyOf(
  once: NonNullable<HandlerDeclaration["once"]>,
): Pick<LockedRoute, "key" | "keptSeconds"> {
  if (typeof once === "object") return { key: "required", keptSeconds: once.keepSeconds ?? 300 };
  return { key: once === false ? "none" : once };
}

export function nameOf({ name }: { readonly name: string }): string {
  return name;
}
