import {
  onceTable,
  outboxTable,
  physicalTableName,
  type TableDeclaration,
  tableVariable,
} from "../../app/handlers/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { allTables, usesMessages } from "../../app/registry/registry.ts";
import { eventRule, maxReceives, messagingNames } from "../../aws/messaging/messaging.ts";
import { deadQueueName, queueName, visibilitySeconds } from "../../aws/messaging/sqs-queue.ts";
import type { RequiredTable } from "../../aws/tables/table-indexes.ts";
import type { Variables } from "../../base/process/environment.ts";

/** Table with the properties that the account must provide. */
export interface NeededTable extends RequiredTable {
  /** Environment variable that overrides the table name. */
  readonly variable: string;
  /**
   * Whether items are permanent. If so, the table needs point-in-time recovery and deletion
   * protection.
   */
  readonly isLasting: boolean;
  readonly stream: "KEYS_ONLY" | undefined;
}

/** Kind of a server's queue, by its contents. */
export type QueueKind = "events" | "jobs";

export interface NeededQueue {
  readonly kind: QueueKind;
  /** Name or URL. */
  readonly name: string;
  readonly deadName: string;
  readonly isOrdered: boolean;
  /** Environment variable that overrides the queue name. */
  readonly variable: string;
  /**
   * Minimum visibility timeout, in seconds. For a Lambda function, it is six times the function's
   * timeout.
   */
  readonly visibilitySeconds: number;
  /** Number of receives after which a message moves to the dead-letter queue. */
  readonly maxReceives: number;
}

/** Event bus, with the events that it must route to the event queue. */
export interface NeededBus {
  readonly name: string;
  /** Environment variable that overrides the bus name. */
  readonly variable: string;
  readonly source: string;
  readonly rule: ReturnType<typeof eventRule>;
  /** Event types with a consumer in this server. */
  readonly consumed: readonly string[];
}

/** Parameters that the server reads from SSM's Parameter Store. */
export interface NeededParameters {
  /** Path of overrides: `/app` for `/app/<feature>/<key name>`. */
  readonly overrides: string | undefined;
  /** Name of the key ring, a SecureString. */
  readonly keyRing: string | undefined;
}

/**
 * Resources that a server needs in its account. Doctor checks the account against them, and
 * templates create them.
 */
export interface Needs {
  /** Tables. The configuration table, which every server has, comes first. */
  readonly tables: readonly [NeededTable, ...NeededTable[]];
  /** Event queue, if the server consumes any events. */
  readonly events: NeededQueue | undefined;
  /** Queue for jobs and deliveries. */
  readonly jobs: NeededQueue | undefined;
  /** Event bus, if the server declares any events. */
  readonly bus: NeededBus | undefined;
  readonly parameters: NeededParameters;
  /** Whether functions that answer requests verify tokens with `KEELSON_AUTH_SECRET`. */
  readonly hasAuthSecret: boolean;
  /**
   * Whether sessions of a tenant role access rows of tenants. True if isolation is enabled and a
   * table has tenants.
   */
  readonly isIsolated: boolean;
}

/** Options of {@link needsOf} that determine names. */
export interface NeedsOptions {
  /** Environment variables that override names. Default: no overrides. */
  readonly env?: Variables;
  /** Prefix of names. Default: `dynamodb.prefix` of the server. */
  readonly prefix?: string;
}

/** Derives the resources that a server needs from its declarations, without calling AWS. */
export function needsOf(
  { options, registry }: DeclaredServer,
  { env = {}, prefix }: NeedsOptions = {},
): Needs {
  const source = options.dynamodb?.prefix ?? "keelson";
  const names = messagingNames(prefix ?? source, env);
  const needed = (table: TableDeclaration) =>
    neededTable(table, physicalTableName(table.name, prefix ?? source, env));
  const [config, ...others] = allTables(registry);
  const consumed = [...new Set([...registry.consumers.values()].map(({ type }) => type))];
  return {
    tables: [needed(config), ...others.map(needed)],
    events: consumed.length > 0 ? neededQueue("events", names.events) : undefined,
    jobs: usesMessages(registry) ? neededQueue("jobs", names.jobs) : undefined,
    bus:
      registry.events.size > 0
        ? {
            name: names.bus,
            variable: "KEELSON_EVENT_BUS",
            source,
            rule: eventRule(source),
            consumed,
          }
        : undefined,
    parameters: { overrides: options.ssm?.path, keyRing: options.keyRing?.parameter },
    hasAuthSecret: options.auth === undefined,
    isIsolated:
      options.isolation !== undefined &&
      [...registry.tables.values()].some(({ tenant }) => tenant === true),
  };
}

export function neededTable(table: TableDeclaration, tableName: string): NeededTable {
  return {
    ...table,
    tableName,
    variable: tableVariable(table.name),
    isLasting: table.name !== onceTable.name, // claims live for minutes
    stream: table.name === outboxTable.name ? "KEYS_ONLY" : undefined, // payloads stay in the table
  };
}

export function neededQueue(kind: QueueKind, name: string): NeededQueue {
  const isOrdered = kind === "jobs";
  const variable = isOrdered ? "KEELSON_JOB_QUEUE" : "KEELSON_EVENT_QUEUE";
  return {
    kind,
    name,
    deadName: deadQueueName(queueName(name)),
    isOrdered,
    variable,
    visibilitySeconds,
    maxReceives,
  };
}

export function queuesOf({ events, jobs }: Pick<Needs, "events" | "jobs">): NeededQueue[] {
  return [events, jobs].filter((queue) => queue !== undefined);
}
