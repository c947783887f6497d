import { isRecord } from "../../base/errors/option-table.ts";
import type { Addressed, Dynalite, Item, Table } from "./dynalite.ts";
import { type Input, ServiceError } from "./service.ts";

export type ItemOperation = ReturnType<typeof prepareOperation>;

/** dynalite lacks `ReturnValuesOnConditionCheckFailure`. */
export function prepareOperation(
  dynalite: Dynalite,
  operation: "PutItem" | "UpdateItem" | "DeleteItem",
  input: Input,
) {
  const onFailure = input["ReturnValuesOnConditionCheckFailure"] ?? "NONE";
  if (onFailure !== "ALL_OLD" && onFailure !== "NONE") {
    throw invalidMember(
      String(onFailure).slice(0, 100),
      "returnValuesOnConditionCheckFailure",
      "satisfy enum value set: [ALL_OLD, NONE]",
    );
  }
  const prepared = dynalite.prepare(operation, input);
  // prepare has checked the table name, and the item of a put or the key of other writes.
  const { TableName, Item, Key } = prepared as { TableName: string; Item: Item; Key: Item };
  const of: Addressed = operation === "PutItem" ? { item: Item } : { key: Key };
  return { operation, table: TableName, of, returnsItem: onFailure === "ALL_OLD", prepared };
}

export async function itemOnFailure(
  dynalite: Dynalite,
  { table, of, returnsItem }: ItemOperation,
): Promise<{ readonly Item?: Item }> {
  if (!returnsItem) return {};
  const item = await dynalite.itemAt(table, dynalite.placeOf(await dynalite.table(table), of));
  return item === undefined ? {} : { Item: item };
}

export async function existingTable(dynalite: Dynalite, { TableName }: Input): Promise<Table> {
  const checked = dynalite.prepare("DescribeTable", { TableName }) as { TableName: string }; // prepare checks the name
  return dynalite.table(checked.TableName);
}

export function isConditionFailure(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.type.endsWith("#ConditionalCheckFailedException");
}

export function validationError(message: string) {
  return new ServiceError("com.amazon.coral.validate#ValidationException", message);
}

export function detected(problem: string) {
  return validationError(`1 validation error detected: ${problem}`);
}

export function invalidMember(value: string | null, path: string, constraint: string) {
  const shown = value === null ? "null" : `'${value}'`;
  return detected(
    `Value ${shown} at '${path}' failed to satisfy constraint: Member must ${constraint}`,
  );
}

export function missingMember(path: string) {
  return invalidMember(null, path, "not be null");
}

export function dynamoDbError(name: string, message: string, members: Input = {}) {
  return new ServiceError(`com.amazonaws.dynamodb.v20120810#${name}`, message, { members });
}

export function asStructure(value: unknown, path: string) {
  if (!isRecord(value)) throw missingMember(path);
  return value;
}
