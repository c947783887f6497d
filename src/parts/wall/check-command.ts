import { isRecord } from "../../base/errors/option-table.ts";
import { createExpressions, type Expressions } from "./expressions.ts";
import {
  type Fields,
  itemProblem,
  keyProblem,
  queryProblem,
  type Reach,
  unreadable,
  updateProblem,
} from "./key-problems.ts";
import { tableOf, type WalledTable } from "./walled-table.ts";

export interface Refusal {
  readonly table: string | undefined;
  readonly reason: string;
}

/**
 * Creates a function that checks the input of an operation such as `GetItem`. `prefix` is the start
 * of the tenant's keys, `undefined` in a run without a tenant.
 */
export function createCommandCheck(tables: ReadonlyMap<string, WalledTable>) {
  const parse = createExpressions();
  return (operation: string, input: unknown, prefix: string | undefined): Refusal | undefined => {
    const check = operations.get(operation);
    if (check === undefined)
      return { table: undefined, reason: "only commands on items can be checked" };
    return check(isRecord(input) ? input : {}, { tables, prefix, parse });
  };
}

interface Rules {
  readonly tables: ReadonlyMap<string, WalledTable>;
  readonly prefix: string | undefined;
  readonly parse: Expressions;
}

type OperationCheck = (input: Fields, rules: Rules) => Refusal | undefined;
type TableCheck = (input: Fields, reach: Reach) => string | undefined;

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

const getItem = within([...read, "Key"], ({ Key: key }, reach) => keyProblem(key, reach));
const putItem = within([...written, "Item"], ({ Item: item }, reach) => itemProblem(item, reach));
const deleteItem = within([...written, "Key"], ({ Key: key }, reach) => keyProblem(key, reach));
const updateItem = within(
  [...written, "Key", "UpdateExpression"],
  (input, reach) => itemProblem(input["Key"], reach) ?? updateProblem(input, reach),
);
const query = within(
  [
    ...read,
    ...["IndexName", "Select", "Limit", "ScanIndexForward", "ExclusiveStartKey"],
    ...["FilterExpression", "KeyConditionExpression", "ExpressionAttributeValues"],
  ],
  queryProblem,
);
const keysToGet = within([...read, "Keys"], ({ Keys: keys }, reach) =>
  firstOf(keys, (key) => keyProblem(key, reach)),
);
const scan: TableCheck = () => "a scan reads the rows of every tenant";

type Members = Readonly<Record<string, TableCheck>>;
const writeRequests: Members = {
  PutRequest: within(["Item"], ({ Item: item }, reach) => itemProblem(item, reach)),
  DeleteRequest: within(["Key"], ({ Key: key }, reach) => keyProblem(key, reach)),
};
const gets: Members = { Get: getItem };
const actions: Members = {
  Put: putItem,
  Update: updateItem,
  Delete: deleteItem,
  ConditionCheck: deleteItem,
};

/** Operations whose input shows which rows they touch. All other operations are refused. */
const operations: ReadonlyMap<string, OperationCheck> = new Map(
  Object.entries<OperationCheck>({
    GetItem: ofTable(getItem),
    PutItem: ofTable(putItem),
    UpdateItem: ofTable(updateItem),
    DeleteItem: ofTable(deleteItem),
    Query: ofTable(query),
    Scan: ofTable(scan),
    BatchGetItem: ofRequestItems((request, reach) =>
      isRecord(request) ? keysToGet(request, reach) : unreadable,
    ),
    BatchWriteItem: ofRequestItems((requests, reach) =>
      firstOf(requests, (request) => {
        const found = onlyMember(request, writeRequests);
        return found === undefined ? unreadable : found.check(found.input, reach);
      }),
    ),
    TransactGetItems: ofTransaction(gets),
    TransactWriteItems: ofTransaction(actions),
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
  return (input, rules) => tableRefusal(input, check, rules);
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

function ofTransaction(members: Members): OperationCheck {
  return ({ TransactItems: items }, rules) => {
    if (!Array.isArray(items)) return { table: undefined, reason: unreadable };
    for (const item of items as readonly unknown[]) {
      const found = onlyMember(item, members);
      if (found === undefined) return { table: undefined, reason: unreadable };
      const refusal = tableRefusal(found.input, found.check, rules);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

function onlyMember(
  item: unknown,
  members: Members,
): { readonly input: Fields; readonly check: TableCheck } | undefined {
  if (!isRecord(item)) return undefined;
  let only: string | undefined;
  for (const name in item) {
    if (item[name] === undefined) continue;
    if (only !== undefined) return undefined;
    only = name;
  }
  if (only === undefined || !Object.hasOwn(members, only)) return undefined;
  const [input, check] = [item[only], members[only]];
  return isRecord(input) && check !== undefined ? { input, check } : undefined;
}

function tableRefusal(input: Fields, check: TableCheck, rules: Rules): Refusal | undefined {
  return refusalOf(input["TableName"], rules, (reach) => check(input, reach));
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
