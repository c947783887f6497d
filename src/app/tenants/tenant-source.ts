import type { Variables } from "../../base/process/environment.ts";
import { historyPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import { objectOf } from "../../parts/messages/cause.ts";
import { tenantPrefix } from "../../parts/wall/tenant-prefix.ts";
import {
  configTable,
  keptEventsTable,
  onceTable,
  outboxTable,
  physicalTableName,
  type TableDeclaration,
} from "../features/table.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { allTables } from "../registry/registry.ts";
import { withoutSecrets } from "./secret-values.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/** A table that is searched for the rows of a tenant. */
export interface TenantSource {
  /** As it is declared: `files`. */
  readonly table: string;
  /** The physical name. */
  readonly tableName: string;
  /** The attributes of the key. */
  readonly keys: readonly string[];
  /** What DynamoDB leaves out already. It lets through every row that {@link TenantSource.verdict} does not call `other`. */
  readonly filter: RowFilter;
  /** The attributes beside the key that the verdict looks at. */
  readonly looksAt: readonly string[];
  /** Whose row it is; `untold` where nothing says so. */
  readonly verdict: (item: StoredItem) => Verdict;
  /** The row as it leaves the account. */
  readonly exported: (item: StoredItem) => StoredItem;
}

/** Whose row it is. */
export type Verdict = "own" | "other" | "untold";

/** A filter expression. */
export interface RowFilter {
  readonly expression: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: StoredItem;
}

/** The tables that may have rows of a tenant, in the order in which they are erased. */
export interface TenantSources {
  readonly sources: readonly TenantSource[];
  /** What stays out of reach, for the receipt. */
  readonly notCovered: readonly string[];
}

/**
 * Finds where a server keeps rows of a tenant: in the application's tables with `tenant: true`, then in keelson's own,
 * configuration last.
 */
export function tenantSources(
  server: DeclaredServer,
  tenantId: string,
  env: Variables,
): TenantSources {
  const { registry, options } = server;
  const prefix = options.dynamodb?.prefix ?? "keelson";
  const named = (table: TableDeclaration) => ({
    declared: table,
    tableName: physicalTableName(table.name, prefix, env),
  });
  const has = new Set(allTables(registry));
  const own = [...registry.tables.values()];
  const [walled, open] = [
    own.filter(({ tenant }) => tenant === true),
    own.filter(({ tenant }) => tenant !== true),
  ];
  return {
    sources: [
      ...walled.map((table) => byPartition(named(table), [{ begins: tenantPrefix(tenantId) }])),
      ...(has.has(keptEventsTable)
        ? [byPartition(named(keptEventsTable), [{ begins: tenantPrefix(tenantId) }])]
        : []),
      ...(has.has(outboxTable) ? [outboxSource(named(outboxTable), tenantId)] : []),
      byTenantId(named(onceTable), tenantId),
      {
        ...byPartition(named(configTable), configPartitions(tenantId)),
        exported: withoutSecrets(registry),
      },
    ],
    notCovered: [
      ...open.map((table) => `the table ${named(table).tableName}, which has no \`tenant: true\``),
      ...outOfReach,
    ],
  };
}

const outOfReach: readonly string[] = [
  "tables that no feature declares",
  "messages in queues and dead-letter queues, and what is in flight",
  "backups, point-in-time recovery and exports of tables",
  "logs, metrics and traces, and what running processes keep in memory",
  "everything outside of these tables: buckets, caches, other services",
];

interface NamedTable {
  readonly declared: TableDeclaration;
  readonly tableName: string;
}

/** A partition, or what partitions begin with. */
type Partition = { readonly is: string } | { readonly begins: string };

function configPartitions(tenantId: string): readonly Partition[] {
  // No user is empty, and IDs are escaped: what follows is a user, and of this tenant.
  const [tenant, users] = [tenantPartition(tenantId), userPartition(tenantId, "")];
  return [
    { is: tenant },
    { begins: users },
    { is: historyPartition(tenant) },
    { begins: historyPartition(users) },
  ];
}

/** A table whose partition keys tell. */
function byPartition(
  { declared, tableName }: NamedTable,
  partitions: readonly Partition[],
): TenantSource {
  const { name: table, partitionKey } = declared;
  return {
    table,
    tableName,
    keys: keysOf(declared),
    filter: {
      expression: partitions
        .map((partition, index) =>
          "is" in partition ? `#key = :v${index}` : `begins_with(#key, :v${index})`,
        )
        .join(" OR "),
      names: { "#key": partitionKey },
      values: Object.fromEntries(
        partitions.map((partition, index) => [
          `:v${index}`,
          { S: "is" in partition ? partition.is : partition.begins },
        ]),
      ),
    },
    looksAt: [],
    verdict: (item) => {
      const key = textOf(item, partitionKey) ?? "";
      const isOwn = partitions.some((partition) =>
        "is" in partition ? key === partition.is : key.startsWith(partition.begins),
      );
      return isOwn ? "own" : "other";
    },
    exported: (item) => item,
  };
}

/** A table of keelson's own whose rows have a `tenantId`. */
function byTenantId({ declared, tableName }: NamedTable, tenantId: string): TenantSource {
  return {
    table: declared.name,
    tableName,
    keys: keysOf(declared),
    filter: {
      expression: "#tenant = :tenant OR attribute_not_exists(#tenant)",
      names: { "#tenant": "tenantId" },
      values: { ":tenant": { S: tenantId } },
    },
    looksAt: ["tenantId"],
    verdict: (item) => {
      if (item["tenantId"] === undefined) return "untold";
      return textOf(item, "tenantId") === tenantId ? "own" : "other";
    },
    exported: (item) => item,
  };
}

/** The table of events that wait: a row that has no `tenantId` yet has an envelope that names it. */
function outboxSource(table: NamedTable, tenantId: string): TenantSource {
  const source = byTenantId(table, tenantId);
  return {
    ...source,
    looksAt: [...source.looksAt, "envelope"],
    verdict: (item) => {
      const envelope = item["tenantId"] === undefined ? envelopeOf(item) : undefined;
      if (envelope === undefined) return source.verdict(item);
      return envelope["tenantId"] === tenantId ? "own" : "other";
    },
    exported: (item) => {
      const text = textOf(item, "envelope");
      return text === undefined ? item : { ...item, envelope: { S: withoutProof(text) } };
    },
  };
}

/**
 * An event or a delayed job without its proof: whoever has that could send it again. How a job is queued stands before it. What cannot be
 * read loses all that looks like one.
 */
function withoutProof(text: string): string {
  const start = Math.max(0, text.indexOf("{"));
  try {
    const { proof, ...message } = objectOf(text.slice(start), "the message");
    return proof === undefined ? text : text.slice(0, start) + JSON.stringify(message);
  } catch {
    return text.replace(/"mac"\s*:\s*"[\w-]*"/g, '"mac":""');
  }
}

/** The event of a row; `undefined` where it is none. */
function envelopeOf(item: StoredItem): Readonly<Record<string, unknown>> | undefined {
  try {
    return objectOf(textOf(item, "envelope") ?? "", "the envelope");
  } catch {
    return undefined;
  }
}

function keysOf({ partitionKey, sortKey }: TableDeclaration): readonly string[] {
  return sortKey === undefined ? [partitionKey] : [partitionKey, sortKey];
}
