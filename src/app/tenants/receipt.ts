import { defined } from "../../base/types/defined.ts";
import type { TenantSources } from "./tenant-source.ts";
import type { TableCount, WalkState } from "./walk.ts";

export interface TenantReceipt {
  readonly action: TenantAction;
  readonly tenant: string;
  /** Start of the action, in ISO 8601. */
  readonly at: string;
  readonly tables: readonly {
    readonly table: string;
    readonly tableName: string;
    /** Rows read, of all tenants and in all passes. */
    readonly scanned: number;
    readonly rows: number;
  }[];
  readonly rows: number;
  readonly passes: number;
  /** The outcome for the tenant's registration. Absent without one, and for an export. */
  readonly registration?: "erased" | "kept" | undefined;
  /** After an erasure: no rows of the tenant are left, as far as keys and attributes show. */
  readonly isDone: boolean;
  readonly notCovered: readonly string[];
}

/** `count` is an erasure's dry run. */
export type TenantAction = "export" | "erase" | "count";

interface ReceiptParts
  extends TenantSources,
    Pick<TenantReceipt, "action" | "tenant" | "at" | "isDone" | "registration"> {
  readonly state: WalkState;
}

export function receiptOf(parts: ReceiptParts): TenantReceipt {
  const { action, tenant, at, isDone, registration, state, sources, notCovered } = parts;
  const tables = [];
  const untold: string[] = [];
  for (const [index, { table, tableName }] of sources.entries()) {
    const count = state.counts[index] as TableCount; // safe: there is one count per table
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
    ...defined({ registration }),
    isDone,
    notCovered: [...untold, ...notCovered],
  };
}

export const participles = { export: "exported", erase: "erased", count: "found" } as const;

export function receiptLines(receipt: TenantReceipt): readonly string[] {
  const { action, tenant, tables, rows, passes, registration, isDone, notCovered } = receipt;
  const done = participles[action];
  return [
    ...tables.map((table) => `${table.tableName}: ${rowsText(table.rows)} ${done}`),
    `tenant ${JSON.stringify(tenant)}: ${rowsText(rows)} ${done}${action === "erase" ? ` in ${passes} ${passes === 1 ? "pass" : "passes"}` : ""}`,
    ...(registration === undefined ? [] : [`registration ${registration}`]),
    ...(isDone ? [] : ["rows keep coming: stop the tenant, then run this again"]),
    "not covered:",
    ...notCovered.map((text) => `- ${text}`),
  ];
}

function rowsText(rows: number): string {
  return rows === 1 ? "1 row" : `${rows} rows`;
}
