import type { BootProblem } from "../../base/errors/boot.ts";
import { callSite } from "../../base/errors/call-site.ts";
import type { RawOptions, Report } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import { metric, type OwnMetricDeclaration } from "../../base/metrics/declared-metric.ts";
import { defined } from "../../base/types/defined.ts";
import { type Handle, handleOf } from "../../base/types/handles.ts";
import type { Jobs, Queries, Writes } from "../../base/types/names.ts";
import type { ConfigKeyHandle, RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { configKeys, handler } from "../handlers/declare.ts";
import type { HandlerDeclaration, RateLimits } from "../handlers/handler.ts";
import { type HookDeclaration, hook } from "../handlers/hooks.ts";
import {
  type ChannelDeclaration,
  type ConsumerDeclaration,
  channel,
  consumer,
  type EventDeclaration,
  event,
  type JobDeclaration,
  job,
  type ProjectionDeclaration,
} from "../handlers/message-handlers.ts";
import { type QuotaDeclaration, quota } from "../handlers/quota.ts";
import { quotaHandle } from "../handlers/quota-handle.ts";
import { type RateDeclaration, rateLimit } from "../handlers/rate-limit.ts";
import { type ReceiverDeclaration, receiver } from "../handlers/receiver.ts";
import { type Declaring, isWord } from "../handlers/requirements.ts";
import { type TableDeclaration, table } from "../handlers/table.ts";
import { tableHandle } from "../handlers/table-handle.ts";
import { webhook } from "../handlers/webhook.ts";
import { projection, projectionConsumers, projectionHandle } from "../projections/projection.ts";
import { type ScheduleDeclaration, schedule, tenantJobs } from "../schedules/schedule.ts";
import type { ConfigHandles, FeatureBuilder } from "./feature-builder.ts";
import { type FeatureOptions, featureUses, type TableUse } from "./uses.ts";

export interface FeatureDeclarations {
  readonly name: string;
  readonly configKeys: readonly RegisteredConfigKey[];
  readonly handlers: readonly HandlerDeclaration[];
  readonly tables: readonly TableDeclaration[];
  readonly events: readonly EventDeclaration[];
  readonly consumers: readonly ConsumerDeclaration[];
  readonly jobs: readonly JobDeclaration[];
  /** Events of others. */
  readonly receivers: readonly ReceiverDeclaration[];
  readonly channels: readonly ChannelDeclaration[];
  readonly projections: readonly ProjectionDeclaration[];
  readonly schedules: readonly ScheduleDeclaration[];
  /** Access to the tables of other features, by the feature's name. */
  readonly uses: ReadonlyMap<string, TableUse>;
  readonly hooks: readonly HookDeclaration[];
  readonly metrics: readonly OwnMetricDeclaration[];
  /** Limits that handlers take from. */
  readonly rateLimits: readonly RateDeclaration[];
  /** Limits of all routes of the feature. */
  readonly rateLimit: RateLimits | undefined;
  readonly quotas: readonly QuotaDeclaration[];
  /** Invalid declarations, which `buildServer` reports together. */
  readonly problems: readonly BootProblem[];
}

type Kinds = Omit<FeatureDeclarations, "name" | "uses" | "hooks" | "rateLimit" | "problems">;

type Declared<Name extends keyof Kinds> = Kinds[Name][number];

/**
 * The noun for each kind, and the member with its unique name, in the order in which duplicates
 * are reported. The compiler compares the kinds with the lists of
 * {@link FeatureDeclarations} and the maps of `Registry`.
 */
export const kinds = Object.freeze({
  configKeys: ["key", "id"],
  handlers: ["handler", "name"],
  tables: ["table", "name"],
  events: ["event", "type"],
  consumers: ["consumer", "name"],
  jobs: ["job", "name"],
  receivers: ["receiver", "name"],
  channels: ["channel", "name"],
  schedules: ["schedule", "name"],
  projections: ["projection", "name"],
  metrics: ["metric", "name"],
  rateLimits: ["limit", "name"],
  quotas: ["quota", "name"],
} as const satisfies {
  readonly [Kind in keyof Kinds]: readonly [what: string, keyof Declared<Kind>];
});

/** Kinds that run under their full names, which are unique across these kinds. */
export const runningKinds = ["handlers", "consumers", "jobs", "receivers", "schedules"] as const;

const declarationsOf = Symbol.for("keelson.feature");

/** A defined feature, with the properties that `declare` returned. */
export type Feature<Members = unknown, Name extends string = string> = Members & {
  readonly name: Name;
  readonly [declarationsOf]: FeatureDeclarations;
};

/** The members that `declare` returned. A single handle exports nothing. */
type Exported<Members> = Members extends Handle ? object : Members;

/** Features without exports share one type, so that an array of one accepts all of them. */
type NameOf<Members, Name extends string> = [keyof Members] extends [never] ? string : Name;

/** Features whose names no entry can contain share one builder type, which takes less to check. */
type Checked<Name extends string> = [keyof Jobs | keyof Queries | keyof Writes] extends [never]
  ? string
  : Name;

/**
 * Defines a feature. `declare` runs immediately, and the properties of its result become properties
 * of the feature. `buildServer` reports all invalid declarations together. Once `declare` has ended,
 * each method of `r` throws an Error.
 * @throws TypeError if `declare` returns a property named `name`.
 * @example
 * const hello = defineFeature("hello", (r) => {
 *   r.query("greeting.show", {
 *     route: "GET /hello",
 *     access: access.everyone,
 *     handler: async () => ({ text: "hello" }),
 *   });
 * });
 */
export function defineFeature<
  const Members extends object = object,
  const Name extends string = string,
>(
  name: Name,
  // biome-ignore lint/suspicious/noConfusingVoidType: a declaration that exports nothing returns nothing
  declare: (r: FeatureBuilder<Checked<Name>>) => Members | void,
  options?: FeatureOptions,
): Feature<Exported<Members>, NameOf<Exported<Members>, Name>> {
  // Safe cast: the object has one empty list for each kind.
  const declared = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []])) as unknown as {
    readonly [Kind in keyof Kinds]: Declared<Kind>[];
  };
  const [hooks, problems]: [HookDeclaration[], BootProblem[]] = [[], []];
  const handles = new Set<unknown>();
  const report: Report = (problem) =>
    void problems.push({ feature: String(name), ...problem, ...defined({ at: callSite() }) });
  const declaring: Declaring = { feature: name, report };
  const add = <Kind extends keyof Kinds>(kind: Kind, ...items: readonly Declared<Kind>[]) =>
    void declared[kind].push(...items);
  const added = <Kind extends keyof Kinds>(kind: Kind, made: Declared<Kind>) => {
    add(kind, made);
    return made;
  };
  // In plain JavaScript, options can have any type, so each function checks its options.
  const adding =
    <Kind extends keyof Kinds>(
      kind: Kind,
      handleKind: string,
      declare: (by: Declaring, name: string, ...given: unknown[]) => Declared<Kind>,
    ) =>
    (name: string, ...given: unknown[]) => {
      const made = added(kind, declare(declaring, name, ...given));
      // Safe casts: the member is the declaration's name, and types have no runtime form.
      const handle = handleOf(handleKind, made[kinds[kind][1] as keyof typeof made] as string);
      handles.add(handle);
      return handle as never;
    };

  const builder: FeatureBuilder<Checked<Name>> = {
    config: (options) => {
      const registered = configKeys(name, options, report);
      add("configKeys", ...registered);
      const handles = registered.map(({ id, name: key, definition }) => [
        key,
        Object.freeze({ id, definition }) satisfies ConfigKeyHandle<unknown>,
      ]);
      // Safe cast: there is one handle per declared key, and the value type has no runtime form.
      return Object.freeze(Object.fromEntries(handles)) as ConfigHandles<typeof options.keys>;
    },
    table: (tableName, options) => {
      const made = added("tables", table(tableName, options, report));
      // Safe cast: only a table with `tenant: true` has tenant keys, at runtime and in its type.
      return tableHandle(made) as never;
    },
    query: adding("handlers", "query", (by, operation, options) =>
      handler("query", by, operation, options),
    ),
    write: adding("handlers", "write", (by, operation, options) =>
      handler("write", by, operation, options),
    ),
    webhook: adding("handlers", "write", webhook),
    hook: (write, options) => void hooks.push(hook(declaring, write, options)),
    event: adding("events", "event", event),
    on: (event, options) => add("consumers", consumer(declaring, event, options)),
    job: adding("jobs", "job", job),
    receive: (name, options) => add("receivers", receiver(declaring, name, options)),
    schedule: (operation, options) =>
      add("jobs", ...tenantJobs(added("schedules", schedule(name, operation, options, report)))),
    projection: (projectionName, options) => {
      const made = added("projections", projection(name, projectionName, options, report));
      add("consumers", ...projectionConsumers(made));
      return projectionHandle(made);
    },
    metric: adding("metrics", "metric", (_by, metricName, options) =>
      metric(name, metricName, options as RawOptions, report),
    ),
    quota: (given, options) => quotaHandle(added("quotas", quota(name, given, options, report))),
    channel: adding("channels", "channel", channel),
    rateLimit: adding("rateLimits", "rate-limit", rateLimit),
  };
  if (!isWord(name)) report(misnamed(name));
  const returned = whileDeclaring(name, builder, declare);
  // A function of one expression returns the handle of its declaration, which exports nothing.
  const members = handles.has(returned) ? undefined : returned;
  if (members instanceof Promise) {
    report(asynchronous(name));
    members.catch(() => undefined); // unhandled, it would end the process before the report
  }
  if (members !== undefined && "name" in members) {
    throw new TypeError(
      `defineFeature("${name}"): the declaration returns a property "name", which is the feature's own; rename it`,
    );
  }
  const uses = featureUses(options, report);
  const own = { uses, rateLimit: options?.rateLimit, hooks, problems };
  const declarations: FeatureDeclarations = { name, ...declared, ...own };
  // Safe cast: the literal has exactly the members of `Feature<Members, Name>`.
  return Object.freeze({ ...members, name, [declarationsOf]: declarations }) as never;
}

/** Each method of `r` throws once `declare` has ended, because nothing would read its declaration. */
function whileDeclaring<Builder extends object, Returned>(
  feature: string,
  builder: Builder,
  declare: (r: Builder) => Returned,
): Returned {
  let hasEnded = false;
  const methods: Record<string, unknown> = {};
  for (const [method, call] of Object.entries(builder)) {
    methods[method] = (...given: unknown[]) => {
      if (hasEnded) throw tooLate(feature, method, given[0]);
      return call(...given);
    };
  }
  try {
    // Safe cast: each method has the parameters and the result of its namesake.
    return declare(Object.freeze(methods) as Builder);
  } finally {
    hasEnded = true;
  }
}

function tooLate(feature: string, method: string, given: unknown): Error {
  const call = typeof given === "string" ? `r.${method}(${quoted(given)})` : `r.${method}`;
  return new Error(
    `defineFeature(${quoted(feature)}): ${call} is called after the declaration function has ended, so no server gets what it declares; declare everything before the function returns`,
  );
}

function misnamed(name: string): Parameters<Report>[0] {
  const message = `feature name ${JSON.stringify(name)} is not in kebab case`;
  const fix = "name it with lower-case letters, digits and hyphens, beginning with a letter";
  return { key: String(name), rule: "feature-name", message, fix };
}

function asynchronous(name: string): Parameters<Report>[0] {
  const message = "its declaration is asynchronous, so its declarations may come too late";
  const fix = "declare everything in a function that is not async";
  return { key: name, rule: "feature-async", message, fix };
}

/** Returns `undefined` for a value that `defineFeature` has not made. */
export function featureDeclarations(feature: unknown): FeatureDeclarations | undefined {
  if (typeof feature !== "object" || feature === null) return undefined;
  return (feature as Partial<Feature>)[declarationsOf];
}
