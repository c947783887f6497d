import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** Item in DynamoDB's format, in which numbers are strings and keep every digit. */
export type StoredItem = Readonly<Record<string, AttributeValue>>;

export function textOf(item: StoredItem, attribute: string): string | undefined {
  return item[attribute]?.S;
}

export function dynamoJson(item: StoredItem): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, jsonOf(value)]));
}

function jsonOf(value: AttributeValue): unknown {
  if (value.B !== undefined) return { B: base64(value.B) };
  if (value.BS !== undefined) return { BS: value.BS.map(base64) };
  if (value.L !== undefined) return { L: value.L.map(jsonOf) };
  if (value.M !== undefined) return { M: dynamoJson(value.M) };
  return value;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
