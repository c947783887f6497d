import type { Dynalite, Item } from "./dynalite.ts";
import { ServiceError } from "./service.ts";

/** A write of one item, by itself or as part of a transaction, checked and ready to run. */
export interface ItemOperation {
  readonly operation: "PutItem" | "UpdateItem" | "DeleteItem";
  readonly table: string;
  /** The item of a put, the key of any other. */
  readonly of: { readonly item: Item } | { readonly key: Item };
  /** Whether a failed condition tells the item that failed it. */
  readonly returnsItem: boolean;
  readonly prepared: object;
}

/** Checks the input of a write. `ReturnValuesOnConditionCheckFailure` is unknown to dynalite. */
export function prepareOperation(
  dynalite: Dynalite,
  operation: ItemOperation["operation"],
  input: Readonly<Record<string, unknown>>,
): ItemOperation {
  const onFailure = input["ReturnValuesOnConditionCheckFailure"] ?? "NONE";
  if (onFailure !== "ALL_OLD" && onFailure !== "NONE") {
    throw invalidMember(
      String(onFailure).slice(0, 100),
      "returnValuesOnConditionCheckFailure",
      "satisfy enum value set: [ALL_OLD, NONE]",
    );
  }
  const prepared = dynalite.prepare(operation, input);
  // prepare has checked these: a table's name, and an item for a put or a key for the others
  const { TableName, Item, Key } = prepared as { TableName: string; Item: Item; Key: Item };
  const of = operation === "PutItem" ? { item: Item } : { key: Key };
  return { operation, table: TableName, of, returnsItem: onFailure === "ALL_OLD", prepared };
}

/** The item that made an operation's condition fail, where the operation asks for it and there is one. */
export async function itemOnFailure(
  dynalite: Dynalite,
  { table, of, returnsItem }: ItemOperation,
): Promise<{ readonly Item?: Item }> {
  if (!returnsItem) return {};
  const item = await dynalite.itemAt(table, dynalite.placeOf(await dynalite.table(table), of));
  return item === undefined ? {} : { Item: item };
}

/** Whether an error is a condition that did not hold. */
export function isConditionFailure(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.type.endsWith("#ConditionalCheckFailedException");
}

/** DynamoDB's answer to input that its rules forbid. */
export function validationError(message: string): ServiceError {
  return new ServiceError("com.amazon.coral.validate#ValidationException", message);
}

/** DynamoDB's words for a member that breaks a constraint. */
export function invalidMember(
  value: string | null,
  path: string,
  constraint: string,
): ServiceError {
  const shown = value === null ? "null" : `'${value}'`;
  return validationError(
    `1 validation error detected: Value ${shown} at '${path}' failed to satisfy constraint: Member must ${constraint}`,
  );
}
