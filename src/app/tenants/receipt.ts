import type { TenantSources } from "./tenant-source.ts";
import type { WalkState } from "./walk.ts";

/** Report of an action on the rows of a tenant. */
export interface TenantReceipt {
  readonly action: TenantAction;
  readonly tenant: string;
  /** ISO 8601. */
  readonly at: string;
  readonly tables: readonly TableReceipt[];
  /** Number of the tenant's rows in all tables. */
  readonly rows: number;
  /** Number of passes over all tables. */
  readonly passes: number;
  /** Whether the tables contain no more rows of the tenant, as far as keys and attributes show. */
  readonly isDone: boolean;
  readonly notCovered: readonly string[];
}

/** Action on the rows of a tenant. `count` is the dry run of an erasure. */
export type TenantAction = "export" | "erase" | "count";

export interface TableReceipt {
  /** Declared name. */
  readonly table: string;
  readonly tableName: string;
  /** Number of rows scanned, of all tenants and in all passes. */
  readonly scanned: number;
  /** Number of the tenant's rows. */
  readonly rows: number;
}

export interface ReceiptParts
  extends TenantSources,
    Pick<TenantReceipt, "action" | "tenant" | "at" | "isDone"> {
  readonly state: WalkState;
}

export function receiptOf({
  action,
  tenant,
  at,
  isDone,
  state,
  sources,
  notCovered,
}: ReceiptParts): TenantReceipt {
  const counted = sources.map(({ table, tableName }, index) => ({
    table,
    tableName,
    ...countAt(state, index),
  }));
  const untold = counted.flatMap(({ tableName, untold }) =>
    untold === 0
      ? []
      : [
          `${rowsText(untold)} of ${tableName} without a tenant: the system's, or an older version's`,
        ],
  );
  return {
    action,
    tenant,
    at,
    tables: counted.map(({ untold: _untold, ...table }) => table),
    rows: counted.reduce((total, { rows }) => total + rows, 0),
    passes: state.pass,
    isDone,
    notCovered: [...untold, ...notCovered],
  };
}

function countAt({ counts }: WalkState, index: number): WalkState["counts"][number] {
  // Safe: it has an element per table.
  return counts[index] as WalkState["counts"][number];
}

const participles = { export: "exported", erase: "erased", count: "found" } as const;

/** Formats a receipt for an operator, line by line. */
export function receiptLines({
  action,
  tenant,
  tables,
  rows,
  passes,
  isDone,
  notCovered,
}: TenantReceipt): readonly string[] {
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
