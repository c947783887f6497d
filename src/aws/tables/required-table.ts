import type { TableDeclaration } from "../../app/features/table.ts";

/** A table as the store has to have it. */
export interface RequiredTable extends TableDeclaration {
  /** The physical name. */
  readonly tableName: string;
}
