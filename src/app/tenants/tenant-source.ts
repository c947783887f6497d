import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import type { Variables } from "../../base/process/environment.ts";
import { keyPartition, secretPartition } from "../../parts/api-keys/api-key.ts";
import { successorOf } from "../../parts/config/declare/key.ts";
import { historyPartition, tenantPartition, userPartition } from "../../parts/config/read/rows.ts";
import { objectOf } from "../../parts/messages/envelope.ts";
import { registryPartition } from "../../parts/tenant-registry/tenant.ts";
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
import { allTables, type Registry } from "../registry/registry.ts";

/** Item in DynamoDB's format, in which numbers are strings and keep every digit. */
export type StoredItem = Readonly<Record<string, AttributeValue>>;

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
  /** Attributes that `verdict` reads in addition to the key. */
  readonly looksAt: readonly string[];
  /** Returns the owner of a row; `untold` if the row does not show it. */
  readonly verdict: (item: StoredItem) => "own" | "other" | "untold";
  /** Returns a row without secrets and proofs. */
  readonly exported: (item: StoredItem) => StoredItem;
}

export interface TenantSources {
  /** In the order of erasure. */
  readonly sources: readonly TenantSource[];
  /** Data that is not searched, as lines of the receipt. */
  readonly notCovered: readonly string[];
}

/**
 * Returns the tables with rows of a tenant: the application's tables with `tenant: true`, then
 * keelson's, with the configuration last.
 *
 * @param keepsRegistration - whether to leave out the registration of the tenant, which an erasure
 * removes at its end. Default `false`.
 */
export function tenantSources(
  server: DeclaredServer,
  tenantId: string,
  env: Variables,
  keepsRegistration = false,
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
    sourceOf(table, byPartition(table, [{ text: tenantPrefix(tenantId), isPrefix: true }]));
  const tables = allTables(registry);
  const own = [...registry.tables.values()];
  return {
    sources: [
      ...own.filter(({ tenant }) => tenant === true).map(inWall),
      ...(tables.includes(keptEventsTable) ? [inWall(keptEventsTable)] : []),
      ...(tables.includes(outboxTable) ? [sourceOf(outboxTable, byEnvelope(tenantId))] : []),
      {
        ...sourceOf(onceTable, byClaim(tenantId, keepsRegistration)),
        exported: withoutHashes,
      },
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
  "messages in queues and dead-letter queues, and requests and messages in flight",
  "backups, point-in-time recovery and exports of tables",
  "logs, metrics and traces, and data in the memory of running processes",
  "everything outside of these tables: buckets, caches, other services",
];

type TenantRowsIn = Pick<TenantSource, "filter" | "verdict"> &
  Partial<Pick<TenantSource, "looksAt" | "exported">>;

interface Partition {
  readonly text: string;
  readonly isPrefix: boolean;
}

function configPartitions(tenantId: string): readonly Partition[] {
  // IDs are escaped and never empty, so only partitions of this tenant's users have this prefix.
  const [tenant, users] = [tenantPartition(tenantId), userPartition(tenantId, "")];
  return [
    { text: tenant, isPrefix: false },
    { text: users, isPrefix: true },
    { text: historyPartition(tenant), isPrefix: false },
    { text: historyPartition(users), isPrefix: true },
  ];
}

function byPartition(
  { partitionKey }: TableDeclaration,
  partitions: readonly Partition[],
): TenantRowsIn {
  const comparisons = partitions.map(({ isPrefix }, index) =>
    isPrefix ? `begins_with(#key, :v${index})` : `#key = :v${index}`,
  );
  return {
    filter: {
      expression: comparisons.join(" OR "),
      names: { "#key": partitionKey },
      values: Object.fromEntries(partitions.map(({ text }, index) => [`:v${index}`, { S: text }])),
    },
    verdict: (item) => {
      const key = textOf(item, partitionKey) ?? "";
      const isOwn = partitions.some(({ text, isPrefix }) =>
        isPrefix ? key.startsWith(text) : key === text,
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

function byClaim(tenantId: string, keepsRegistration: boolean): TenantRowsIn {
  const rows = byTenantId(tenantId);
  if (!keepsRegistration) return rows;
  return {
    ...rows,
    verdict: (item) =>
      textOf(item, onceTable.partitionKey)?.startsWith(registryPartition) === true
        ? "other"
        : rows.verdict(item),
  };
}

function byEnvelope(tenantId: string): TenantRowsIn {
  const rows = byTenantId(tenantId);
  return {
    ...rows,
    looksAt: ["tenantId", "envelope", "parts"],
    verdict: (item) => {
      const isLarge = item["parts"] !== undefined || textOf(item, "pk")?.startsWith("part#");
      if (item["tenantId"] === undefined && isLarge === true) return "other";
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
 * Removes the proof, with which a reader of the export could resend an event or a delayed job. A
 * job's JSON follows its group and deduplication ID.
 */
function withoutProof(text: string): string {
  const start = Math.max(0, text.indexOf("{"));
  try {
    const { proof, ...message } = objectOf(text.slice(start), "the message");
    return proof === undefined ? text : text.slice(0, start) + JSON.stringify(message);
  } catch {
    // Of a part, or of a message that was cut. Other lengths are the tenant's own data.
    return text.replace(/"mac"\s*:\s*"[\w-]{43}"/g, '"mac":""');
  }
}

/** Removes the hashes of API keys: of a key its attributes, of a secret the key of its row. */
function withoutHashes(item: StoredItem): StoredItem {
  const partition = String(textOf(item, onceTable.partitionKey));
  if (partition.startsWith(secretPartition))
    return { ...item, [onceTable.partitionKey]: { S: secretPartition } };
  if (!partition.startsWith(keyPartition)) return item;
  const { hash: _hash, formerHash: _former, ...shown } = item;
  return shown;
}

function envelopeOf(item: StoredItem): Readonly<Record<string, unknown>> | undefined {
  try {
    return objectOf(textOf(item, "envelope") ?? "", "the envelope");
  } catch {
    return undefined;
  }
}

/**
 * Replaces a secret value of a configuration row with `{ secret: true }`: an encrypted value, or
 * one whose key is declared as `encrypted`, even if the value is readable.
 */
function withoutSecrets(registry: Pick<Registry, "configKeys">): (item: StoredItem) => StoredItem {
  return (item) => {
    const { value } = item;
    if (value === undefined) return item;
    // In the history, the sort key is the configuration key, `#` and the version.
    const id = String(textOf(item, "sk")).replace(/#.*/s, "");
    const key = registry.configKeys.get(id) ?? successorOf(id, registry);
    const isSecret = isSealedValue(value) || key?.definition.encrypted === true;
    return isSecret ? { ...item, value: { M: { secret: { BOOL: true } } } } : item;
  };
}

/** Also recognizes formats of later versions. */
function isSealedValue({ M: value }: NonNullable<StoredItem[string]>): boolean {
  return (
    value?.["sealed"]?.N !== undefined &&
    value["key"]?.S !== undefined &&
    value["data"]?.B !== undefined
  );
}

export function textOf(item: StoredItem, attribute: string): string | undefined {
  return item[attribute]?.S;
}
