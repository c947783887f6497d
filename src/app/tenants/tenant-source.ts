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
  /** Filter of the scan. It may exclude only rows for which `verdict` returns `other`. */
  readonly filter: {
    readonly expression: string;
    readonly names: Readonly<Record<string, string>>;
    readonly values: StoredItem;
  };
  /** Attributes that `verdict` reads besides the key. */
  readonly looksAt: readonly string[];
  /**
   * Returns the owner of a row: this tenant, another tenant, or `untold` if the row does not show
   * it.
   */
  readonly verdict: (item: StoredItem) => Verdict;
  /** Returns a row as it is exported, without secrets and proofs. */
  readonly exported: (item: StoredItem) => StoredItem;
}

export type Verdict = "own" | "other" | "untold";

/** Tables to search for the rows of a tenant, in the order of erasure. */
export interface TenantSources {
  readonly sources: readonly TenantSource[];
  /** Data that is not searched, as lines of the receipt. */
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
  const nameOf = (name: string) => physicalTableName(name, prefix, env);
  const sourceOf = (table: TableDeclaration, rows: TenantRowsIn): TenantSource => ({
    table: table.name,
    tableName: nameOf(table.name),
    keys: table.sortKey === undefined ? [table.partitionKey] : [table.partitionKey, table.sortKey],
    looksAt: [],
    exported: (item) => item,
    ...rows,
  });
  const inWall = (table: TableDeclaration) =>
    sourceOf(table, byPartition(table, [{ begins: tenantPrefix(tenantId) }]));
  const has = new Set(allTables(registry));
  const own = [...registry.tables.values()];
  return {
    sources: [
      ...own.filter(({ tenant }) => tenant === true).map(inWall),
      ...(has.has(keptEventsTable) ? [inWall(keptEventsTable)] : []),
      ...(has.has(outboxTable) ? [sourceOf(outboxTable, byEnvelope(tenantId))] : []),
      sourceOf(onceTable, byTenantId(tenantId)),
      {
        ...sourceOf(configTable, byPartition(configTable, configPartitions(tenantId))),
        exported: withoutSecrets(registry),
      },
    ],
    notCovered: [
      ...own
        .filter(({ tenant }) => tenant !== true)
        .map(({ name }) => `the table ${nameOf(name)}, which has no \`tenant: true\``),
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

/** Parts of a source that depend on how its rows name their tenant. */
type TenantRowsIn = Pick<TenantSource, "filter" | "verdict"> &
  Partial<Pick<TenantSource, "looksAt" | "exported">>;

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

function byPartition(
  { partitionKey }: TableDeclaration,
  partitions: readonly Partition[],
): TenantRowsIn {
  const comparisons = partitions.map((partition, index) =>
    "is" in partition ? `#key = :v${index}` : `begins_with(#key, :v${index})`,
  );
  const values = partitions.map((partition, index) => [
    `:v${index}`,
    { S: "is" in partition ? partition.is : partition.begins },
  ]);
  return {
    filter: {
      expression: comparisons.join(" OR "),
      names: { "#key": partitionKey },
      values: Object.fromEntries(values),
    },
    verdict: (item) => {
      const key = textOf(item, partitionKey) ?? "";
      const isOwn = partitions.some((partition) =>
        "is" in partition ? key === partition.is : key.startsWith(partition.begins),
      );
      return isOwn ? "own" : "other";
    },
  };
}

function byTenantId(tenantId: string): TenantRowsIn {
  return {
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
  };
}

/** Finds rows by their `tenantId`, or else by the tenant in their envelope. */
function byEnvelope(tenantId: string): TenantRowsIn {
  const rows = byTenantId(tenantId);
  return {
    ...rows,
    looksAt: ["tenantId", "envelope"],
    verdict: (item) => {
      const envelope = item["tenantId"] === undefined ? envelopeOf(item) : undefined;
      if (envelope === undefined) return rows.verdict(item);
      return envelope["tenantId"] === tenantId ? "own" : "other";
    },
    exported: (item) => {
      const text = textOf(item, "envelope");
      return text === undefined ? item : { ...item, envelope: { S: withoutProof(text) } };
    },
  };
}

/**
 * Removes the proof from an event or a delayed job, because a reader of the export could resend the
 * message with it. A job's JSON follows its group and deduplication ID. In text that cannot be
 * parsed, empties everything that looks like a proof.
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
