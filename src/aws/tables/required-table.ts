import type { TableDeclaration } from "../../app/features/table.ts";

/** Table that the store must have. */
export interface RequiredTable extends TableDeclaration {
  readonly tableName: string;
}
