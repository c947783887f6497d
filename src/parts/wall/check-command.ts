import { isRecord } from "../../base/errors/option-table.ts";
import { createExpressions, type Expressions } from "./expressions.ts";
import { tableOf, type WalledTable } from "./walled-table.ts";

export interface Refusal {
  readonly table: string | undefined;
  readonly reason: string;
}

/** The tenant's keys start with the check's `prefix`, which is `undefined` without a tenant. */
export function createCommandCheck(tables: ReadonlyMap<string, WalledTable>) {
  const parse = createExpressions();
  return (operation: string, input: unknown, prefix: string | undefined): Refusal | undefined => {
    const check = operations.get(operation);
    if (check === undefined)
      return { table: undefined, reason: "only commands on items can be checked" };
    return check(isRecord(input) ? input : {}, { tables, prefix, parse });
  };
}

type Fields = Readonly<Record<string, unknown>>;

interface Rules {
  readonly tables: ReadonlyMap<string, WalledTable>;
  readonly prefix: string | undefined;
  readonly parse: Expressions;
}

type OperationCheck = (input: Fields, rules: Rules) => Refusal | undefined;
type TableCheck = (input: Fields, reach: Reach) => string | undefined;

export const unreadable = "the command cannot be read";

const shared = [
  "TableName",
  "ReturnConsumedCapacity",
  "ReturnItemCollectionMetrics",
  "ExpressionAttributeNames",
];
const written = [
  ...shared,
  "ExpressionAttributeValues",
  "ConditionExpression",
  "ReturnValues",
  "ReturnValuesOnConditionCheckFailure",
];
const read = [...shared, "AttributesToGet", "ConsistentRead", "ProjectionExpression"];

const byKey: TableCheck = ({ Key: key }, reach) => keyProblem(key, reach);
const byItem: TableCheck = ({ Item: item }, reach) => itemProblem(item, reach);
const getItem = ofTable(within([...read, "Key"], byKey));
const putItem = ofTable(within([...written, "Item"], byItem));
const deleteItem = ofTable(within([...written, "Key"], byKey));
const updateItem = ofTable(
  within(
    [...written, "Key", "UpdateExpression"],
    (input, reach) => itemProblem(input["Key"], reach) ?? updateProblem(input, reach),
  ),
);
const queried = [
  ...[...read, "IndexName", "Select", "Limit", "ScanIndexForward", "ExclusiveStartKey"],
  ...["FilterExpression", "KeyConditionExpression", "ExpressionAttributeValues"],
];
const keysToGet = within([...read, "Keys"], ({ Keys: keys }, reach) =>
  firstOf(keys, (key) => keyProblem(key, reach)),
);

type Members<Check> = Readonly<Record<string, Check>>;
const writeRequests: Members<TableCheck> = {
  PutRequest: within(["Item"], byItem),
  DeleteRequest: within(["Key"], byKey),
};
/** Operations whose input shows which rows they touch. All others are refused. */
const operations: ReadonlyMap<string, OperationCheck> = new Map(
  Object.entries<OperationCheck>({
    GetItem: getItem,
    PutItem: putItem,
    UpdateItem: updateItem,
    DeleteItem: deleteItem,
    Query: ofTable(within(queried, queryProblem)),
    Scan: ofTable(() => "a scan reads the rows of every tenant"),
    BatchGetItem: ofRequestItems((request, reach) =>
      isRecord(request) ? keysToGet(request, reach) : unreadable,
    ),
    BatchWriteItem: ofRequestItems((requests, reach) =>
      firstOf(requests, (request) => {
        const found = onlyMember(request, writeRequests);
        return found === undefined ? unreadable : found.check(found.input, reach);
      }),
    ),
    TransactGetItems: ofTransaction({ Get: getItem }),
    TransactWriteItems: ofTransaction({
      Put: putItem,
      Update: updateItem,
      Delete: deleteItem,
      ConditionCheck: deleteItem,
    }),
  }),
);

const tenantless = "the run has no tenant";

/** Refuses unknown parameters: legacy parameters, and any that DynamoDB may add. */
function within(known: readonly string[], check: TableCheck): TableCheck {
  const names = new Set(known);
  return (input, reach) => {
    for (const name in input) {
      if (!names.has(name) && input[name] !== undefined)
        return `the parameter ${name} cannot be checked`;
    }
    return check(input, reach);
  };
}

function ofTable(check: TableCheck): OperationCheck {
  return (input, rules) => refusalOf(input["TableName"], rules, (reach) => check(input, reach));
}

function ofRequestItems(
  check: (request: unknown, reach: Reach) => string | undefined,
): OperationCheck {
  return ({ RequestItems: items }, rules) => {
    if (!isRecord(items)) return { table: undefined, reason: unreadable };
    for (const name in items) {
      const refusal = refusalOf(name, rules, (reach) => check(items[name], reach));
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

function ofTransaction(members: Members<OperationCheck>): OperationCheck {
  return ({ TransactItems: items }, rules) => {
    if (!Array.isArray(items)) return { table: undefined, reason: unreadable };
    for (const item of items as readonly unknown[]) {
      const found = onlyMember(item, members);
      if (found === undefined) return { table: undefined, reason: unreadable };
      const refusal = found.check(found.input, rules);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

function onlyMember<Check>(
  item: unknown,
  members: Members<Check>,
): { readonly input: Fields; readonly check: Check } | undefined {
  if (!isRecord(item)) return undefined;
  let only: string | undefined;
  for (const name in item) {
    // DynamoDB-Toolbox adds `ToolboxItem` for itself, and the SDK does not send it.
    if (item[name] === undefined || name === "ToolboxItem") continue;
    if (only !== undefined) return undefined;
    only = name;
  }
  if (only === undefined || !Object.hasOwn(members, only)) return undefined;
  const [input, check] = [item[only], members[only]];
  return isRecord(input) && check !== undefined ? { input, check } : undefined;
}

function refusalOf(
  name: unknown,
  { tables, prefix, parse }: Rules,
  problemOf: (reach: Reach) => string | undefined,
): Refusal | undefined {
  let table = typeof name === "string" ? tables.get(name) : undefined;
  if (table === undefined) {
    const physical = tableOf(name);
    if (physical === undefined)
      return { table: undefined, reason: "the name of its table cannot be read" };
    table = tables.get(physical);
    if (table === undefined) return undefined;
  }
  const reason = prefix === undefined ? tenantless : problemOf({ table, prefix, parse });
  return reason === undefined ? undefined : { table: table.name, reason };
}

function firstOf(
  list: unknown,
  problemOf: (item: unknown) => string | undefined,
): string | undefined {
  if (!Array.isArray(list)) return unreadable;
  for (const item of list as readonly unknown[]) {
    const problem = problemOf(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

interface Reach {
  readonly table: WalledTable;
  readonly prefix: string;
  readonly parse: Expressions;
}

export function keyProblem(key: unknown, { table, prefix }: Reach): string | undefined {
  const { partitionKey } = table;
  if (!isRecord(key)) return unreadable;
  if (begins(key[partitionKey], prefix)) return undefined;
  return key instanceof Promise
    ? "its Key is a promise, which is not awaited"
    : unfit(partitionKey, key);
}

/** A row with the key attribute of an index appears in the index, so the attribute is checked. */
export function itemProblem(item: unknown, { table, prefix }: Reach): string | undefined {
  const { partitionKey, led } = table;
  if (!isRecord(item)) return unreadable;
  const wrong = led.find((name) =>
    item[name] === undefined ? name === partitionKey : !begins(item[name], prefix),
  );
  if (wrong === undefined) return undefined;
  return item instanceof Promise
    ? "its Key or Item is a promise, which is not awaited"
    : unfit(wrong, item);
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
    const set = placed(value, input);
    if (!begins(set, prefix)) return foreign(attribute, set);
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
    const compared = value === undefined ? undefined : placed(value, input);
    isLed = begins(compared, prefix);
    if (!isLed) return foreign(attribute, compared);
  }
  if (!isLed) return `it has no condition on ${attribute}`;
  const keys = [table.partitionKey, attribute];
  const isOwn =
    start === undefined || (isRecord(start) && keys.every((key) => begins(start[key], prefix)));
  return isOwn ? undefined : "its ExclusiveStartKey is not one of this tenant";
}

function unfit(attribute: string, { [attribute]: value }: Fields): string {
  return value === undefined ? `it has no ${attribute}` : foreign(attribute, value);
}

function foreign(attribute: string, value: unknown): string {
  return value instanceof Promise
    ? `${attribute} is a promise, which is not awaited`
    : `${attribute} does not start with the tenant`;
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
