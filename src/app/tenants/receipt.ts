import type { TenantSources } from "./tenant-source.ts";
import type { WalkState } from "./walk.ts";

/** What was done with the rows of a tenant. */
export interface TenantReceipt {
  readonly action: TenantAction;
  readonly tenant: string;
  /** ISO 8601. */
  readonly at: string;
  readonly tables: readonly TableReceipt[];
  /** The tenant's rows in all tables. */
  readonly rows: number;
  /** How often all tables were walked through. */
  readonly passes: number;
  /** Whether the tables have no more of the tenant's rows, as far as keys and attributes tell. */
  readonly isDone: boolean;
  readonly notCovered: readonly string[];
}

/** What is done with the rows of a tenant; `count` is an erasure's dry run. */
export type TenantAction = "export" | "erase" | "count";

/** What was done in one table. */
export interface TableReceipt {
  /** As it is declared. */
  readonly table: string;
  readonly tableName: string;
  /** Rows looked at, of all tenants, in all passes. */
  readonly scanned: number;
  /** The tenant's rows. */
  readonly rows: number;
}

/** What a receipt is made of. */
export interface ReceiptParts
  extends TenantSources,
    Pick<TenantReceipt, "action" | "tenant" | "at" | "isDone"> {
  readonly state: WalkState;
}

/** Makes the receipt of a walk. */
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
  // Safe: there is one for each table.
  return counts[index] as WalkState["counts"][number];
}

const participles = { export: "exported", erase: "erased", count: "found" } as const;

/** The receipt for people, line by line. */
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
