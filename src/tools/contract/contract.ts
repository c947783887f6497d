import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isNothing, takesNothing } from "../../app/openapi/answers.ts";
import { sortedBy } from "../../app/openapi/canonical.ts";
import {
  createSchemaReader,
  type JsonSchema,
  type SchemaReader,
} from "../../app/openapi/json-schema.ts";
import { sentAsText } from "../../app/openapi/request-parts.ts";
import { defined, isObject } from "../../app/openapi/schema.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { ServerOptions } from "../../app/registry/options.ts";
import { type RoutedHandler, routed } from "../../app/registry/registry.ts";
import type { BodyKind } from "../../parts/http/message.ts";
import type { StreamForm } from "../../parts/http/streamed-output.ts";
import { receivedName } from "../../parts/messages/received-event.ts";
import { leastKeptSeconds, type OnceRule, onceRule } from "../../parts/once/once-by.ts";
import { isScheme } from "../../parts/webhooks/scheme.ts";
import { type LockedAccess, lockedAccess } from "./access-strictness.ts";
import { type LockedKey, lockedKey } from "./locked-keys.ts";

const contractFormat = 1;

/** Guarantees to clients, consumers and stored settings, as plain JSON. */
export interface Contract {
  readonly format: typeof contractFormat;
  readonly routes: readonly LockedRoute[];
  readonly events: readonly LockedEvent[];
  readonly jobs: readonly { readonly name: string; readonly input: JsonSchema }[];
  readonly channels: readonly { readonly name: string; readonly message: JsonSchema }[];
  /** Absent without receivers, so that older versions can read the lock. */
  readonly receivers?: readonly LockedReceiver[];
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
  /** Preset with which the sender of a webhook signs, or `function`. */
  readonly signed?: string;
  readonly body?: BodyKind;
  readonly key?: LockedKeyHeader;
  /** Seconds for which a retry gets the first response. */
  readonly keptSeconds?: number;
  readonly input?: JsonSchema;
  /** Of each item, if the route streams. */
  readonly output?: JsonSchema;
  readonly stream?: StreamForm["kind"];
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

/** A receiver's name identifies the events that it has handled. */
export interface LockedReceiver extends Readonly<Record<"name" | "event" | "bus", string>> {
  readonly input: JsonSchema;
}

export type LockedSchedule = Readonly<Record<"name" | "cron" | "timeZone" | "missed", string>>;

export async function contractOf(server: DeclaredServer, from: string) {
  const reader = createSchemaReader({ from });
  const contract = await lockedContract(server, reader);
  const withBytes = contract.routes.filter(({ body }) => body === "bytes");
  const ofBytes = new Set(withBytes.map((route) => `${routeText(route)} input: body`));
  return { contract, unsaid: reader.unsaid.filter(({ where }) => !ofBytes.has(where)) };
}

async function lockedContract(
  { registry, options }: DeclaredServer,
  reader: SchemaReader,
): Promise<Contract> {
  const { basePath = "", once } = options;
  const inputOf = (schema: StandardSchemaV1, where: string) => reader.read(schema, "input", where);
  const receivers = await locked(
    registry.receivers.values(),
    async ({ name, bus, input, ...of }) => ({
      ...{ name, event: receivedName(of), bus },
      input: await inputOf(input, `receiver ${name} input`),
    }),
    nameOf,
  );
  return {
    format: contractFormat,
    routes: await locked(
      routed(registry.handlers.values()),
      (route) => lockedRoute(route, basePath, once, reader),
      ({ path, method }) => `${path} ${method}`,
    ),
    events: await locked(
      registry.events.values(),
      async ({ type, keptDays, schema }) =>
        defined({
          type,
          kept: keptDays === Infinity ? ("forever" as const) : keptDays,
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
    ...(receivers.length > 0 && { receivers }),
    consumers: await locked(
      registry.consumers.values(),
      ({ name, type }) => ({ name, event: type }),
      nameOf,
    ),
    schedules: await locked(
      registry.schedules.values(),
      ({ name, cron, timeZone, missed, ...declared }) => ({
        ...{ name, cron, timeZone: declared.for === undefined ? timeZone : "of each tenant" },
        missed,
      }),
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

export function routeText({ method, path }: Pick<LockedRoute, "method" | "path">) {
  return `${method} ${path}`;
}

async function lockedRoute(
  { route, target }: RoutedHandler,
  basePath: string,
  serverOnce: ServerOptions["once"],
  reader: SchemaReader,
): Promise<LockedRoute> {
  const { input, output, stream, access, kind, body, name, errors = {}, status, webhook } = target;
  const place = { method: route.method, path: `${basePath}${route.pattern}` };
  const where = routeText(place);
  const whole = stream?.item ?? output;
  // In parallel, because concurrent reads share one wait.
  const [said, lockedInput] = await Promise.all([
    whole && reader.read(whole, "output", `${where} output`),
    input && reader.read(input, "input", `${where} input`, sentAsText(route, target)),
  ]);
  const isOptional = said !== undefined && !isNothing(said) && (await takesNothing(target));
  return defined({
    ...place,
    handler: name,
    // Safe cast: a server with a route without a rule cannot be built.
    access: lockedAccess(access as NonNullable<typeof access>),
    signed: webhook && (isScheme(webhook.verify) ? webhook.verify.name : "function"),
    ...(kind === "write" ? { body, ...keyOf(onceRule(target.once, serverOnce)) } : {}),
    input: lockedInput,
    output: said,
    stream: stream?.kind,
    statuses: (status ?? (isOptional ? [200, 204] : undefined))?.toSorted((a, b) => a - b),
    errors: Object.keys(errors).length === 0 ? undefined : errors,
  });
}

function keyOf(once: OnceRule | false) {
  if (once === false) return { key: "none" as const };
  const { key, keepSeconds = leastKeptSeconds } = once;
  return key === "required" || keepSeconds !== leastKeptSeconds
    ? { key, keptSeconds: keepSeconds }
    : { key };
}

export function nameOf({ name }: { readonly name: string }) {
  return name;
}

export function contractText(contract: Contract) {
  return `${JSON.stringify(ordered(contract), undefined, 2)}\n`;
}

export function readContract(text: string): Contract {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    const { message } = error as Error; // safe cast: JSON.parse only throws errors
    throw new Error(`it is not JSON: ${message}; after a merge conflict, write it again`);
  }
  const { format }: { readonly format?: unknown } = Object(read);
  if (typeof format === "number" && format > contractFormat)
    throw new Error(
      `its format is ${format}, and this keelson reads ${contractFormat}; use the keelson that wrote it, or a later one`,
    );
  if (format !== contractFormat)
    throw new Error("it has no format; keelson contract write makes one");
  const optional = Object(read)["receivers"] === undefined ? [] : [receiverList];
  const wrong = [...lists, ...optional].find(([name, ...ids]) => !hasList(read, name, ids));
  if (wrong !== undefined)
    throw new Error(`its ${wrong[0]} are not a list that keelson has written; write it again`);
  // Safe cast: the format is known, and each entry has its identifying members.
  return read as Contract;
}

/** With the members that identify the entries. */
const lists = [
  ["routes", "method", "path"],
  ["events", "type"],
  ["jobs", "name"],
  ["channels", "name"],
  ["consumers", "name", "event"],
  ["schedules", "name"],
  ["keys", "id"],
] as const;
const receiverList = ["receivers", "name", "event", "bus"] as const;

function hasList(read: unknown, name: string, ids: readonly string[]) {
  const list = Object(read)[name];
  const isEntry = (entry: unknown) => ids.every((id) => typeof Object(entry)[id] === "string");
  return Array.isArray(list) && list.every(isEntry);
}

/** Members of schemas are sorted; others keep their order, the most important first. */
const schemas: ReadonlySet<string> = new Set(["input", "output", "payload", "message", "errors"]);
const sets: ReadonlySet<string> = new Set(["required", "enum", "type"]);

function ordered(value: unknown): unknown {
  return mapped(value, (name, part) => (schemas.has(name) ? sorted(part) : ordered(part)));
}

function sorted(value: unknown): unknown {
  const members = mapped(value, (name, part) =>
    sets.has(name) && Array.isArray(part)
      ? sortedBy(part.map(sorted), (item) => JSON.stringify(item))
      : sorted(part),
  );
  return isObject(members)
    ? Object.fromEntries(sortedBy(Object.entries(members), ([name]) => name))
    : members;
}

function mapped(value: unknown, change: (name: string, part: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => change("", part));
  const members = Object.entries(value).map(([name, part]) => [name, change(name, part)]);
  return Object.fromEntries(members);
}
