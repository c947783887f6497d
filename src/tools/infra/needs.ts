import {
  onceTable,
  outboxTable,
  physicalTableName,
  type TableDeclaration,
  tableVariable,
} from "../../app/handlers/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import type { ServerOptions } from "../../app/registry/options.ts";
import { allTables, type Registry, usesMessages } from "../../app/registry/registry.ts";
import { messagingNames } from "../../aws/messaging/names.ts";
import {
  eventRule,
  maxReceives,
  type ReceivedRule,
  receivedRules,
} from "../../aws/messaging/rules.ts";
import { deadQueueName, queueName, visibilitySeconds } from "../../aws/messaging/sqs-queue.ts";
import type { RequiredTable } from "../../aws/tables/tables.ts";
import { namesTokens } from "../../base/identity/auth-options.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { FairMode } from "../../parts/messages/job-route.ts";

export interface NeededTable extends RequiredTable {
  readonly variable: string;
  /** Permanent items need point-in-time recovery and deletion protection. */
  readonly isLasting: boolean;
  readonly stream: "KEYS_ONLY" | undefined;
}

export type NeededQueue = ReturnType<typeof neededQueue>;

export interface NeededBus extends ReturnType<typeof neededBus> {
  /** Whether its rule sets the message group of events. */
  readonly isFair: boolean;
}

export interface Needs {
  /** The configuration table, which every server has, comes first. */
  readonly tables: readonly [NeededTable, ...NeededTable[]];
  readonly events: NeededQueue | undefined;
  readonly jobs: NeededQueue | undefined;
  /** The fair queue of jobs. With `off`, the server neither needs nor reads it. */
  readonly fair: { readonly mode: FairMode; readonly queue: NeededQueue } | undefined;
  readonly bus: NeededBus | undefined;
  /** Queue of events of others, and the rules that fill it. */
  readonly received:
    | { readonly queue: NeededQueue; readonly rules: readonly ReceivedRule[] }
    | undefined;
  readonly parameters: {
    /** Path of override parameters: `/app` for `/app/<feature>/<key name>`. */
    readonly overrides: string | undefined;
    readonly keyRing: string | undefined;
  };
  readonly hasAuthSecret: boolean;
  /** Usage is stored in the table of claims. */
  readonly hasQuotas: boolean;
  readonly isIsolated: boolean;
}

export const fairSteps = ["off", "receive", "send", "events"] as const;

/** Steps of a deployment to fair queues. With `events`, the rule also sets message groups. */
export type FairStep = (typeof fairSteps)[number];

/** Reads declarations only, and does not call AWS. */
export function needsOf(
  { options, registry }: DeclaredServer,
  given: { env?: Variables; prefix?: string; fair?: FairStep } = {},
): Needs {
  const { env = {}, prefix, fair = "off" } = given;
  const source = options.dynamodb?.prefix ?? "keelson";
  const start = prefix ?? source;
  const names = messagingNames(start, env, fair === "events" ? "send" : fair);
  const needed = (table: TableDeclaration) =>
    neededTable(table, physicalTableName(table.name, start, env), keepsInClaims(options, registry));
  const [config, ...others] = allTables(registry);
  const consumed = [...new Set([...registry.consumers.values()].map(({ type }) => type))];
  return {
    tables: [needed(config), ...others.map(needed)],
    events: consumed.length > 0 ? neededQueue("events", names.events) : undefined,
    jobs: usesMessages(registry) ? neededQueue("jobs", names.jobs) : undefined,
    fair: usesMessages(registry)
      ? { mode: names.fairMode, queue: neededQueue("fair-jobs", names.fairJobs) }
      : undefined,
    bus:
      registry.events.size > 0
        ? { ...neededBus(names.bus, source, consumed), isFair: fair === "events" }
        : undefined,
    received:
      registry.receivers.size > 0
        ? {
            queue: neededQueue("received", names.received),
            rules: receivedRules(registry.receivers.values(), queueName(names.received)),
          }
        : undefined,
    parameters: { overrides: options.ssm?.path, keyRing: options.keyRing?.parameter },
    hasAuthSecret: !namesTokens(options.auth) && options.auth?.resolve === undefined,
    hasQuotas: registry.quotas.size > 0,
    isIsolated: options.isolation !== undefined && hasTenants(registry),
  };
}

export function hasTenants({ tables }: Registry) {
  return [...tables.values()].some(({ tenant }) => tenant === true);
}

function neededBus(name: string, source: string, consumed: readonly string[]) {
  return { name, variable: "KEELSON_EVENT_BUS", source, rule: eventRule(source), consumed };
}

/** Whether the table of claims also has permanent rows: API keys, tenants, or usage of quotas. */
export function keepsInClaims({ auth, tenants }: ServerOptions, { quotas }: Registry): boolean {
  return Boolean(auth?.apiKeys) || tenants === true || quotas.size > 0;
}

export function neededTable(
  table: TableDeclaration,
  tableName: string,
  isLastingClaims = false,
): NeededTable {
  return {
    ...table,
    tableName,
    variable: tableVariable(table.name),
    isLasting: table.name !== onceTable.name || isLastingClaims, // claims live for minutes
    stream: table.name === outboxTable.name ? "KEYS_ONLY" : undefined, // payloads stay in the table
  };
}

const queueVariables = {
  events: "KEELSON_EVENT_QUEUE",
  jobs: "KEELSON_JOB_QUEUE",
  "fair-jobs": "KEELSON_FAIR_JOB_QUEUE",
  received: "KEELSON_RECEIVED_QUEUE",
} as const;

export function neededQueue(kind: keyof typeof queueVariables, name: string) {
  const isOrdered = kind === "jobs";
  return {
    kind,
    name,
    deadName: deadQueueName(queueName(name)),
    isOrdered,
    variable: queueVariables[kind],
    visibilitySeconds, // the minimum; a Lambda function needs six times its own timeout
    maxReceives,
  };
}

export function queuesOf({ events, jobs, fair, received }: Needs): NeededQueue[] {
  const fairJobs = fair?.mode === "off" ? undefined : fair?.queue;
  return [events, jobs, fairJobs, received?.queue].filter((queue) => queue !== undefined);
}
