import type { Expressions } from "./expressions.ts";
import type { WalledTable } from "./walled-table.ts";

export type Fields = Readonly<Record<string, unknown>>;

export const unreadable = "the command cannot be read";

export function keyProblem(
  key: unknown,
  { partitionKey }: WalledTable,
  prefix: string,
): string | undefined {
  if (!isRecord(key)) return unreadable;
  return begins(key[partitionKey], prefix) ? undefined : foreign(partitionKey);
}

/** A row may lack an index's attribute; with it, the row appears in that index. */
export function itemProblem(
  item: unknown,
  { partitionKey, led }: WalledTable,
  prefix: string,
): string | undefined {
  if (!isRecord(item)) return unreadable;
  const wrong = led.find((name) =>
    item[name] === undefined ? name === partitionKey : !begins(item[name], prefix),
  );
  return wrong === undefined ? undefined : foreign(wrong);
}

export function updateProblem(
  {
    UpdateExpression: text,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
  }: Fields,
  { led }: WalledTable,
  prefix: string,
  parse: Expressions["update"],
): string | undefined {
  if (text === undefined) return undefined;
  const assignments = typeof text === "string" ? parse(text) : undefined;
  if (assignments === undefined) return "its UpdateExpression cannot be read";
  for (const { name, kind, isNested, value } of assignments) {
    const attribute = nameOf(name, names);
    if (attribute === undefined) return "its UpdateExpression names no attribute";
    if (!led.includes(attribute) || (kind === "remove" && !isNested)) continue;
    if (kind !== "set" || isNested || value === undefined)
      return `${attribute} may only be set to a value or removed`;
    if (!begins(placed(value, values), prefix)) return foreign(attribute);
  }
  return undefined;
}

export function queryProblem(
  input: Fields,
  table: WalledTable,
  prefix: string,
  parse: Expressions["keyCondition"],
): string | undefined {
  const { IndexName: index, ExclusiveStartKey: start, KeyConditionExpression: text } = input;
  const { ExpressionAttributeNames: names, ExpressionAttributeValues: values } = input;
  const attribute = index === undefined ? table.partitionKey : table.indexes.get(index as string);
  if (attribute === undefined) return "its index is not declared";
  const conditions = typeof text === "string" ? parse(text) : undefined;
  if (conditions === undefined) return "its KeyConditionExpression cannot be read";
  let isLed = false;
  for (const { name, value } of conditions) {
    if (nameOf(name, names) !== attribute) continue;
    isLed = value !== undefined && begins(placed(value, values), prefix);
    if (!isLed) return foreign(attribute);
  }
  if (!isLed) return `it has no condition on ${attribute}`;
  if (start === undefined) return undefined;
  if (
    !isRecord(start) ||
    !begins(start[table.partitionKey], prefix) ||
    !begins(start[attribute], prefix)
  ) {
    return "its ExclusiveStartKey is not one of this tenant";
  }
  return undefined;
}

function foreign(attribute: string): string {
  return `${attribute} does not begin with the tenant`;
}

/** Accepts `"acme/1"` of document clients, `{ S: "acme/1" }` in wire form. */
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

function placed(value: string, values: unknown): unknown {
  return isRecord(values) ? values[value] : undefined;
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
