import type { Variables } from "../../base/process/environment.ts";
import { historyPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import { objectOf } from "../../parts/messages/envelope.ts";
import { tenantPrefix } from "../../parts/wall/tenant-prefix.ts";
import {
  configTable,
  keptEventsTable,
  onceTable,
  outboxTable,
  physicalTableName,
  type TableDeclaration,
} from "../handlers/table.ts";
import type { DeclaredServer } from "../registry/declared-server.ts";
import { allTables } from "../registry/registry.ts";
import { withoutSecrets } from "./secret-values.ts";
import { type StoredItem, textOf } from "./stored-item.ts";

/** Table that is searched for the rows of a tenant. */
export interface TenantSource {
  /** Declared name: `files`. */
  readonly table: string;
  readonly tableName: string;
  readonly keys: readonly string[];
  /** May exclude only rows for which {@link TenantSource.verdict} returns `other`. */
  readonly filter: RowFilter;
  /** Attributes that the verdict reads besides the key. */
  readonly looksAt: readonly string[];
  /** `untold` if the row does not show its owner. */
  readonly verdict: (item: StoredItem) => Verdict;
  /** Returns a row as it leaves the account. */
  readonly exported: (item: StoredItem) => StoredItem;
}

/** Owner of a row: this tenant, another one, or unknown. */
export type Verdict = "own" | "other" | "untold";

export interface RowFilter {
  readonly expression: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: StoredItem;
}

/** In the order of erasure. */
export interface TenantSources {
  readonly sources: readonly TenantSource[];
  /** Lines for the receipt. */
  readonly notCovered: readonly string[];
}

/**
 * Returns the tables with rows of a tenant: the application's tables with `tenant: true`, then
 * keelson's, with the configuration last.
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

/** A partition key, or the beginning of several. */
type Partition = { readonly is: string } | { readonly begins: string };

function configPartitions(tenantId: string): readonly Partition[] {
  // IDs are escaped and never empty, so every partition with this prefix belongs to a user of this
  // tenant.
  const [tenant, users] = [tenantPartition(tenantId), userPartition(tenantId, "")];
  return [
    { is: tenant },
    { begins: users },
    { is: historyPartition(tenant) },
    { begins: historyPartition(users) },
  ];
}

/** Source of a table whose partition keys contain the tenant. */
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

/** Source of a keelson table whose rows have a `tenantId`. */
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

/** In a row without `tenantId`, the envelope has the tenant. */
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
 * Removes the proof from an event or a delayed job, with which a reader of the export could resend
 * it. The group and deduplication ID of a job precede its JSON. In unreadable text, empties
 * whatever looks like a proof.
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
