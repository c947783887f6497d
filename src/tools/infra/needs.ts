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
import { eventRule, maxReceives, messagingNames } from "../../aws/messaging/messaging.ts";
import { deadQueueName, queueName, visibilitySeconds } from "../../aws/messaging/sqs-queue.ts";
import type { RequiredTable } from "../../aws/tables/tables.ts";
import { namesTokens } from "../../base/identity/auth-options.ts";
import type { Variables } from "../../base/process/environment.ts";

export interface NeededTable extends RequiredTable {
  readonly variable: string;
  /** Permanent items need point-in-time recovery and deletion protection. */
  readonly isLasting: boolean;
  readonly stream: "KEYS_ONLY" | undefined;
}

export type NeededQueue = ReturnType<typeof neededQueue>;

export type NeededBus = ReturnType<typeof neededBus>;

export interface Needs {
  /** The configuration table, which every server has, comes first. */
  readonly tables: readonly [NeededTable, ...NeededTable[]];
  readonly events: NeededQueue | undefined;
  readonly jobs: NeededQueue | undefined;
  readonly bus: NeededBus | undefined;
  readonly parameters: {
    /** Path of override parameters: `/app` for `/app/<feature>/<key name>`. */
    readonly overrides: string | undefined;
    readonly keyRing: string | undefined;
  };
  readonly hasAuthSecret: boolean;
  readonly isIsolated: boolean;
}

/** Reads declarations only, and does not call AWS. */
export function needsOf(
  { options, registry }: DeclaredServer,
  { env = {}, prefix }: { env?: Variables; prefix?: string } = {},
): Needs {
  const source = options.dynamodb?.prefix ?? "keelson";
  const start = prefix ?? source;
  const names = messagingNames(start, env);
  const needed = (table: TableDeclaration) =>
    neededTable(table, physicalTableName(table.name, start, env), keepsInClaims(options));
  const [config, ...others] = allTables(registry);
  const consumed = [...new Set([...registry.consumers.values()].map(({ type }) => type))];
  return {
    tables: [needed(config), ...others.map(needed)],
    events: consumed.length > 0 ? neededQueue("events", names.events) : undefined,
    jobs: usesMessages(registry) ? neededQueue("jobs", names.jobs) : undefined,
    bus: registry.events.size > 0 ? neededBus(names.bus, source, consumed) : undefined,
    parameters: { overrides: options.ssm?.path, keyRing: options.keyRing?.parameter },
    hasAuthSecret: !namesTokens(options.auth),
    isIsolated: options.isolation !== undefined && hasTenants(registry),
  };
}

export function hasTenants({ tables }: Registry) {
  return [...tables.values()].some(({ tenant }) => tenant === true);
}

function neededBus(name: string, source: string, consumed: readonly string[]) {
  return { name, variable: "KEELSON_EVENT_BUS", source, rule: eventRule(source), consumed };
}

/** Whether the table of claims also has permanent rows. */
export function keepsInClaims({ auth }: ServerOptions): boolean {
  return Boolean(auth?.apiKeys);
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

export function neededQueue(kind: "events" | "jobs", name: string) {
  const isOrdered = kind === "jobs";
  return {
    kind,
    name,
    deadName: deadQueueName(queueName(name)),
    isOrdered,
    variable: isOrdered ? "KEELSON_JOB_QUEUE" : "KEELSON_EVENT_QUEUE",
    visibilitySeconds, // the minimum; a Lambda function needs six times its own timeout
    maxReceives,
  };
}

export function queuesOf({ events, jobs }: Needs): NeededQueue[] {
  return [events, jobs].filter((queue) => queue !== undefined);
}
