import type { BootProblem } from "../../base/errors/boot.ts";
import type { BootRule } from "../../base/errors/boot-rule.ts";
import type { OwnMetricDeclaration } from "../../base/metrics/declared-metric.ts";
import type { RegisteredConfigKey } from "../../parts/config/declare/key.ts";
import { type ParsedRoute, parseRoute } from "../../parts/http/route.ts";
import {
  type Feature,
  type FeatureDeclarations,
  featureDeclarations,
  kinds,
  runningKinds,
} from "../features/feature.ts";
import type { HandlerDeclaration } from "../handlers/handler.ts";
import type { HookDeclaration } from "../handlers/hooks.ts";
import type {
  ChannelDeclaration,
  ConsumerDeclaration,
  EventDeclaration,
  JobDeclaration,
  ProjectionDeclaration,
} from "../handlers/message-handlers.ts";
import type { QuotaDeclaration } from "../handlers/quota.ts";
import type { RateDeclaration } from "../handlers/rate-limit.ts";
import type { ReceiverDeclaration } from "../handlers/receiver.ts";
import {
  configTable,
  keptEventsTable,
  onceTable,
  outboxTable,
  type TableDeclaration,
} from "../handlers/table.ts";
import type { ScheduleDeclaration } from "../schedules/schedule.ts";
import type { DeliveryOptions } from "./options.ts";

/** All declarations of some features. Maps are by full name (`files.file.create`) unless stated. */
export interface Registry {
  readonly features: readonly FeatureDeclarations[];
  /** Configuration keys by identifier: `files:config:max-upload-size-mb`. */
  readonly configKeys: ReadonlyMap<string, RegisteredConfigKey>;
  readonly handlers: ReadonlyMap<string, HandlerDeclaration>;
  /** Tables by logical name. */
  readonly tables: ReadonlyMap<string, TableDeclaration>;
  /** Events by type: `file.created`. */
  readonly events: ReadonlyMap<string, EventDeclaration>;
  readonly consumers: ReadonlyMap<string, ConsumerDeclaration>;
  readonly jobs: ReadonlyMap<string, JobDeclaration>;
  readonly receivers: ReadonlyMap<string, ReceiverDeclaration>;
  /** Channels by name, without the built-in channels. */
  readonly channels: ReadonlyMap<string, ChannelDeclaration>;
  readonly hasWebhooks: boolean;
  readonly schedules: ReadonlyMap<string, ScheduleDeclaration>;
  /** Hooks by the full name of their write, in the order of features. */
  readonly hooks: ReadonlyMap<string, readonly HookDeclaration[]>;
  readonly projections: ReadonlyMap<string, ProjectionDeclaration>;
  readonly metrics: ReadonlyMap<string, OwnMetricDeclaration>;
  /** Rate limits that handlers take from. */
  readonly rateLimits: ReadonlyMap<string, RateDeclaration>;
  readonly quotas: ReadonlyMap<string, QuotaDeclaration>;
  /** Problems of single declarations, and duplicate names. */
  readonly problems: readonly BootProblem[];
}

/**
 * Collects the declarations of features, for tools and validators, without validating them.
 * @param delivery - as in `buildServer`. Default: no webhooks.
 * @example
 * validateAppOverrides(createRegistry([files]), { "files:config:max-upload-size-mb": 50 });
 */
export function createRegistry(features: readonly Feature[], delivery?: DeliveryOptions): Registry {
  const problems: BootProblem[] = [];
  const declared = declaredFeatures(features, problems);
  collected(declared, ["feature", "name"], (feature) => [feature], problems);
  const maps = Object.entries(kinds).map(([kind, named]) => [
    kind,
    collected(declared, named, (feature) => feature[kind as keyof typeof kinds], problems),
  ]);
  return Object.freeze({
    features: declared,
    // Safe cast: each kind has the map of its items.
    ...(Object.fromEntries(maps) as Pick<Registry, keyof typeof kinds>),
    hasWebhooks: delivery?.webhook !== undefined,
    hooks: Map.groupBy(
      declared.flatMap(({ hooks }) => hooks),
      ({ write }) => write,
    ),
    problems,
  });
}

function declaredFeatures(
  features: readonly Feature[],
  problems: BootProblem[],
): FeatureDeclarations[] {
  const problem = (...given: Parameters<typeof serverProblem>) => {
    problems.push(serverProblem(...given));
    return [];
  };
  if (!Array.isArray(features)) {
    const fix = "pass features: [files, billing]";
    return problem("features", "option-type", "`features` is not an array", fix);
  }
  return features.flatMap((feature: unknown, index) => {
    const declarations = featureDeclarations(feature);
    if (declarations === undefined) {
      const fix = "pass what defineFeature returns";
      const message = "it was not made by defineFeature";
      return problem(`features[${index}]`, "not-a-feature", message, fix);
    }
    problems.push(...declarations.problems);
    return [declarations];
  });
}

function collected(
  features: readonly FeatureDeclarations[],
  [what, name]: readonly [what: "feature" | (typeof kinds)[keyof typeof kinds][0], name: string],
  itemsOf: (feature: FeatureDeclarations) => readonly object[],
  problems: BootProblem[],
): ReadonlyMap<string, object> {
  const found = new Map<string, object>();
  const message = `this ${what} is declared twice`;
  const fix = "rename one of the two, or declare it once";
  for (const feature of features) {
    for (const item of itemsOf(feature)) {
      const key: string = Reflect.get(item, name);
      if (found.has(key))
        problems.push({ feature: feature.name, key, rule: `duplicate-${what}`, message, fix });
      else found.set(key, item);
    }
  }
  return found;
}

export function messageProblems(registry: Registry): BootProblem[] {
  const { events, consumers, jobs, receivers, schedules } = registry;
  const consuming = [...consumers.values()];
  const undeclared = consuming.filter(({ type }) => !events.has(type));
  const forgotten = consuming.filter(
    ({ projection, type }) =>
      projection !== undefined && events.has(type) && events.get(type)?.keptDays === undefined,
  );
  const named = [jobs, receivers, schedules].flatMap((kind) => [...kind.values()]);
  const taken = [...consuming, ...named].filter(
    ({ name }) =>
      runningKinds.filter((kind) => registry[kind].has(name)).length >
      (schedules.get(name)?.for === undefined ? 1 : 2), // a schedule for tenants has a job
  );
  return [
    ...undeclared.map(
      ({ feature, name: key, type }): BootProblem => ({
        feature,
        key,
        rule: "event-undeclared",
        message: `it consumes ${JSON.stringify(type)}, which no feature of this server declares`,
        fix: "declare it with r.event, or add the feature that does",
      }),
    ),
    ...forgotten.map(
      ({ feature, name: key, type }): BootProblem => ({
        feature,
        key,
        rule: "event-not-kept",
        message: `it projects ${JSON.stringify(type)}, which is not kept, so it could not be rebuilt`,
        fix: `keep it: r.event(${JSON.stringify(type)}, schema, { keepDays: 30 }) or { keep: true }`,
      }),
    ),
    ...taken.map(
      ({ feature, name: key }): BootProblem => ({
        feature,
        key,
        rule: "duplicate-name",
        message: "a handler, consumer, job, receiver or schedule of this name is declared as well",
        fix: "rename one of them",
      }),
    ),
  ];
}

export function usesMessages(registry: Registry): boolean {
  const { events, consumers, jobs, channels, hasWebhooks } = registry;
  return hasWebhooks || [events, consumers, jobs, channels].some(({ size }) => size > 0);
}

/** Whether a process has queues to read. Events of others do not need an outbox. */
export function usesQueues(registry: Registry): boolean {
  return usesMessages(registry) || registry.receivers.size > 0;
}

export function allTables(registry: Registry): [TableDeclaration, ...TableDeclaration[]] {
  const keepsEvents = [...registry.events.values()].some(({ keptDays }) => keptDays !== undefined);
  return [
    configTable,
    onceTable,
    ...(usesMessages(registry) ? [outboxTable] : []),
    ...(keepsEvents ? [keptEventsTable] : []),
    ...registry.tables.values(),
  ];
}

export function serverProblem(
  key: string,
  rule: BootRule,
  message: string,
  fix: string,
): BootProblem {
  return { feature: "", key, rule, message, fix };
}

export interface RoutedHandler<Handler = HandlerDeclaration> {
  readonly route: ParsedRoute;
  readonly target: Handler;
}

export function routed<Handler extends Pick<HandlerDeclaration, "route">>(
  handlers: Iterable<Handler>,
): RoutedHandler<Handler>[] {
  return [...handlers].flatMap((target) => {
    const route = target.route === undefined ? undefined : parseRoute(target.route);
    return route === undefined || "problem" in route ? [] : [{ route, target }];
  });
}
