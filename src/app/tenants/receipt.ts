import type { TenantSources } from "./tenant-source.ts";
import type { TableCount, WalkState } from "./walk.ts";

export interface TenantReceipt {
  readonly action: TenantAction;
  readonly tenant: string;
  /** ISO 8601. */
  readonly at: string;
  readonly tables: readonly TableReceipt[];
  readonly rows: number;
  /** Over all tables. */
  readonly passes: number;
  /** As far as keys and attributes show, no rows of the tenant are left. */
  readonly isDone: boolean;
  readonly notCovered: readonly string[];
}

/** `count` is the dry run of an erasure. */
export type TenantAction = "export" | "erase" | "count";

interface TableReceipt {
  /** Declared name. */
  readonly table: string;
  readonly tableName: string;
  /** Rows of all tenants, in all passes. */
  readonly scanned: number;
  /** Rows of the tenant. */
  readonly rows: number;
}

interface ReceiptParts
  extends TenantSources,
    Pick<TenantReceipt, "action" | "tenant" | "at" | "isDone"> {
  readonly state: WalkState;
}

export function receiptOf(parts: ReceiptParts): TenantReceipt {
  const { action, tenant, at, isDone, state, sources, notCovered } = parts;
  const tables: TableReceipt[] = [];
  const untold: string[] = [];
  for (const [index, { table, tableName }] of sources.entries()) {
    const count = state.counts[index] as TableCount; // safe: one per table
    tables.push({ table, tableName, scanned: count.scanned, rows: count.rows });
    if (count.untold > 0)
      untold.push(
        `${rowsText(count.untold)} of ${tableName} without a tenant: the system's, or an older version's`,
      );
  }
  return {
    action,
    tenant,
    at,
    tables,
    rows: tables.reduce((total, { rows }) => total + rows, 0),
    passes: state.pass,
    isDone,
    notCovered: [...untold, ...notCovered],
  };
}

const participles = { export: "exported", erase: "erased", count: "found" } as const;

export function receiptLines(receipt: TenantReceipt): readonly string[] {
  const { action, tenant, tables, rows, passes, isDone, notCovered } = receipt;
  const done = participles[action];
  return [
    ...tables.map((table) => `${table.tableName}: ${rowsText(table.rows)} ${done}`),
    `tenant ${JSON.stringify(tenant)}: ${rowsText(rows)} ${done}${action === "erase" ? ` in ${passes} ${passes === 1 ? "pass" : "passes"}` : ""}`,
    ...(isDone ? [] : ["rows keep coming: stop the tenant, then run this again"]),
    "not covered:",
    ...notCovered.map((text) => `- ${text}`),
  ];
}

function rowsText(rows: number): string {
  return rows === 1 ? "1 row" : `${rows} rows`;
}
