import type { TableDeclaration } from "../../app/handlers/table.ts";

/** Table that the store must have. */
export interface RequiredTable extends TableDeclaration {
  readonly tableName: string;
}
