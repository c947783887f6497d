import {
  onceTable,
  outboxTable,
  physicalTableName,
  type TableDeclaration,
  tableVariable,
} from "../../app/features/table.ts";
import type { DeclaredServer } from "../../app/registry/declared-server.ts";
import { allTables, usesMessages } from "../../app/registry/registry.ts";
import { eventRule, maxReceives, messagingNames } from "../../aws/messaging/messaging.ts";
import { deadQueueName, queueName, visibilitySeconds } from "../../aws/messaging/sqs-queue.ts";
import type { RequiredTable } from "../../aws/tables/required-table.ts";
import type { Variables } from "../../base/process/environment.ts";

/** A table as the account has to have it. */
export interface NeededTable extends RequiredTable {
  /** The variable that names another. */
  readonly variable: string;
  /** Whether its items are to be kept: point-in-time recovery and deletion protection are for those. */
  readonly isLasting: boolean;
  /** What its stream carries. */
  readonly stream: "KEYS_ONLY" | undefined;
}

/** The two queues of a server, by what they carry. */
export type QueueKind = "events" | "jobs";

/** A queue, with its dead-letter queue. */
export interface NeededQueue {
  readonly kind: QueueKind;
  /** Or its URL. */
  readonly name: string;
  readonly deadName: string;
  readonly isOrdered: boolean;
  /** The variable that names another. */
  readonly variable: string;
  /** How long a message is hidden at least, in seconds; for a Lambda function it is six times its timeout. */
  readonly visibilitySeconds: number;
  /** How often a message is received before it goes to the dead-letter queue. */
  readonly maxReceives: number;
}

/** The bus, and what has to go from it into the queue of events. */
export interface NeededBus {
  readonly name: string;
  /** The variable that names another. */
  readonly variable: string;
  /** The `source` of the server's events. */
  readonly source: string;
  /** The rule that puts them into their queue. */
  readonly rule: ReturnType<typeof eventRule>;
  /** The types that somebody here consumes. */
  readonly consumed: readonly string[];
}

/** What is read of SSM's Parameter Store. */
export interface NeededParameters {
  /** The path of overrides: `/app` for `/app/<feature>/<key name>`. */
  readonly overrides: string | undefined;
  /** The name of the key ring, a SecureString. */
  readonly keyRing: string | undefined;
}

/** What a server needs of its account: doctor compares the account with it, and templates make it. */
export interface Needs {
  /** The table of configuration first, which every server has. */
  readonly tables: readonly [NeededTable, ...NeededTable[]];
  /** Of events, where one is consumed. */
  readonly events: NeededQueue | undefined;
  /** Of jobs and deliveries. */
  readonly jobs: NeededQueue | undefined;
  /** Where events are declared. */
  readonly bus: NeededBus | undefined;
  readonly parameters: NeededParameters;
  /** Whether what answers requests verifies tokens with `KEELSON_AUTH_SECRET`. */
  readonly hasAuthSecret: boolean;
  /** Whether rows of tenants are reached by sessions of a role: there are such rows, and it is asked for. */
  readonly isIsolated: boolean;
}

/** What names are made of. */
export interface NeedsOptions {
  /** What a server is told of its names. Default: nothing. */
  readonly env?: Variables;
  /** What names begin with. Default: `dynamodb.prefix` of the server. */
  readonly prefix?: string;
}

/** What a server needs of its account, by its declarations. It asks nobody. */
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

/** What is needed of a table. */
export function neededTable(table: TableDeclaration, tableName: string): NeededTable {
  return {
    ...table,
    tableName,
    variable: tableVariable(table.name),
    isLasting: table.name !== onceTable.name, // claims live for minutes
    stream: table.name === outboxTable.name ? "KEYS_ONLY" : undefined, // payloads stay in the table
  };
}

/** What is needed of a queue, by its name or its URL. */
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

/** The queues that a server has. */
export function queuesOf({ events, jobs }: Pick<Needs, "events" | "jobs">): NeededQueue[] {
  return [events, jobs].filter((queue) => queue !== undefined);
}
