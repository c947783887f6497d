import { isRecord } from "../../base/errors/option-table.ts";
import type { Expressions } from "./expressions.ts";
import type { WalledTable } from "./walled-table.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Table of a command, and the prefix of the partition keys that the tenant may access. */
export interface Reach {
  readonly table: WalledTable;
  readonly prefix: string;
  readonly parse: Expressions;
}

export const unreadable = "the command cannot be read";

export function keyProblem(key: unknown, { table, prefix }: Reach): string | undefined {
  const { partitionKey } = table;
  if (!isRecord(key)) return unreadable;
  return begins(key[partitionKey], prefix) ? undefined : foreign(partitionKey);
}

/** A row with the key attribute of an index appears in the index, so the attribute is checked. */
export function itemProblem(item: unknown, { table, prefix }: Reach): string | undefined {
  const { partitionKey, led } = table;
  if (!isRecord(item)) return unreadable;
  const wrong = led.find((name) =>
    item[name] === undefined ? name === partitionKey : !begins(item[name], prefix),
  );
  return wrong === undefined ? undefined : foreign(wrong);
}

export function updateProblem(input: Fields, { table, prefix, parse }: Reach): string | undefined {
  const { UpdateExpression: text, ExpressionAttributeNames: names } = input;
  if (text === undefined) return undefined;
  const assignments = typeof text === "string" ? parse.update(text) : undefined;
  if (assignments === undefined) return "its UpdateExpression cannot be read";
  for (const { name, kind, isNested, value } of assignments) {
    const attribute = nameOf(name, names);
    if (attribute === undefined) return "its UpdateExpression names no attribute";
    if (!table.led.includes(attribute) || (kind === "remove" && !isNested)) continue;
    if (kind !== "set" || isNested || value === undefined)
      return `${attribute} may only be set to a value or removed`;
    if (!begins(placed(value, input), prefix)) return foreign(attribute);
  }
  return undefined;
}

export function queryProblem(input: Fields, { table, prefix, parse }: Reach): string | undefined {
  const { IndexName: index, ExclusiveStartKey: start, KeyConditionExpression: text } = input;
  const attribute = index === undefined ? table.partitionKey : table.indexes.get(index as string);
  if (attribute === undefined) return "its index is not declared";
  const conditions = typeof text === "string" ? parse.keyCondition(text) : undefined;
  if (conditions === undefined) return "its KeyConditionExpression cannot be read";
  let isLed = false;
  for (const { name, value } of conditions) {
    if (nameOf(name, input["ExpressionAttributeNames"]) !== attribute) continue;
    isLed = value !== undefined && begins(placed(value, input), prefix);
    if (!isLed) return foreign(attribute);
  }
  if (!isLed) return `it has no condition on ${attribute}`;
  const keys = [table.partitionKey, attribute];
  const isOwn =
    start === undefined || (isRecord(start) && keys.every((key) => begins(start[key], prefix)));
  return isOwn ? undefined : "its ExclusiveStartKey is not one of this tenant";
}

function foreign(attribute: string): string {
  return `${attribute} does not begin with the tenant`;
}

/** Accepts `"acme/1"`, from document clients, and `{ S: "acme/1" }`, the wire form. */
function begins(value: unknown, prefix: string): boolean {
  if (typeof value === "string") return value.startsWith(prefix);
  if (!isRecord(value)) return false;
  for (const type in value) if (type !== "S") return false;
  const { S: text } = value;
  return typeof text === "string" && text.startsWith(prefix);
}

function nameOf(name: string, names: unknown): string | undefined {
  if (!name.startsWith("#")) return name;
  const known = isRecord(names) ? names[name] : undefined;
  return typeof known === "string" ? known : undefined;
}

function placed(value: string, { ExpressionAttributeValues: values }: Fields): unknown {
  return isRecord(values) ? values[value] : undefined;
}
