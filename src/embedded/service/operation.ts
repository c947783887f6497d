import type { Dynalite, Item } from "./dynalite.ts";
import { ServiceError } from "./service.ts";

/** Validated write of one item, standalone or part of a transaction. */
export interface ItemOperation {
  readonly operation: "PutItem" | "UpdateItem" | "DeleteItem";
  readonly table: string;
  /** Item of a put, key of any other write. */
  readonly of: { readonly item: Item } | { readonly key: Item };
  /** Whether a failed condition returns the item. */
  readonly returnsItem: boolean;
  readonly prepared: object;
}

/**
 * Validates the input of a write, including `ReturnValuesOnConditionCheckFailure`, which dynalite
 * does not support.
 */
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
  // prepare has checked these: a table name, and an item for a put or a key for the other writes
  const { TableName, Item, Key } = prepared as { TableName: string; Item: Item; Key: Item };
  const of = operation === "PutItem" ? { item: Item } : { key: Key };
  return { operation, table: TableName, of, returnsItem: onFailure === "ALL_OLD", prepared };
}

/**
 * Returns the item that failed an operation's condition, if the operation requests it and the item
 * exists.
 */
export async function itemOnFailure(
  dynalite: Dynalite,
  { table, of, returnsItem }: ItemOperation,
): Promise<{ readonly Item?: Item }> {
  if (!returnsItem) return {};
  const item = await dynalite.itemAt(table, dynalite.placeOf(await dynalite.table(table), of));
  return item === undefined ? {} : { Item: item };
}

export function isConditionFailure(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.type.endsWith("#ConditionalCheckFailedException");
}

export function validationError(message: string): ServiceError {
  return new ServiceError("com.amazon.coral.validate#ValidationException", message);
}

/** Creates DynamoDB's validation error for an invalid member. */
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
