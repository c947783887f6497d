import type { TableDeclaration } from "../../app/handlers/table.ts";

export interface RequiredTable extends TableDeclaration {
  readonly tableName: string;
}
