import { createExpressions, type Expressions } from "./expressions.ts";
import {
  type Fields,
  isRecord,
  itemProblem,
  keyProblem,
  queryProblem,
  unreadable,
  updateProblem,
} from "./key-problems.ts";
import { tableOf, type WalledTable } from "./walled-table.ts";

export interface Refusal {
  /** Logical name. */
  readonly table: string | undefined;
  readonly reason: string;
}

/**
 * Checks the input of an operation such as `GetItem` for the tenant whose keys start with `prefix`;
 * `undefined` in a run without a tenant.
 */
export type CommandCheck = (
  operation: string,
  input: unknown,
  prefix: string | undefined,
) => Refusal | undefined;

export function createCommandCheck(tables: ReadonlyMap<string, WalledTable>): CommandCheck {
  const parse = createExpressions();
  return (operation, input, prefix) => {
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
type TableCheck = (
  input: Fields,
  table: WalledTable,
  prefix: string,
  parse: Expressions,
) => string | undefined;

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

const getItem = within([...read, "Key"], (input, table, prefix) =>
  keyProblem(input["Key"], table, prefix),
);
const putItem = within([...written, "Item"], (input, table, prefix) =>
  itemProblem(input["Item"], table, prefix),
);
const deleteItem = within([...written, "Key"], (input, table, prefix) =>
  keyProblem(input["Key"], table, prefix),
);
const updateItem = within(
  [...written, "Key", "UpdateExpression"],
  (input, table, prefix, parse) =>
    itemProblem(input["Key"], table, prefix) ?? updateProblem(input, table, prefix, parse.update),
);
const query = within(
  [
    ...read,
    ...["IndexName", "Select", "Limit", "ScanIndexForward", "ExclusiveStartKey"],
    ...["FilterExpression", "KeyConditionExpression", "ExpressionAttributeValues"],
  ],
  (input, table, prefix, parse) => queryProblem(input, table, prefix, parse.keyCondition),
);
const keysToGet = within([...read, "Keys"], (input, table, prefix) =>
  firstOf(input["Keys"], (key) => keyProblem(key, table, prefix)),
);
const scan: TableCheck = () => "a scan reads the rows of every tenant";

const writeRequests: Readonly<Record<string, TableCheck>> = {
  PutRequest: within(["Item"], (input, table, prefix) => itemProblem(input["Item"], table, prefix)),
  DeleteRequest: within(["Key"], (input, table, prefix) => keyProblem(input["Key"], table, prefix)),
};
const gets: Readonly<Record<string, TableCheck>> = { Get: getItem };
const actions: Readonly<Record<string, TableCheck>> = {
  Put: putItem,
  Update: updateItem,
  Delete: deleteItem,
  ConditionCheck: deleteItem,
};

/** Operations whose input shows which rows they touch. All others are refused. */
const operations: ReadonlyMap<string, OperationCheck> = new Map(
  Object.entries<OperationCheck>({
    GetItem: ofTable(getItem),
    PutItem: ofTable(putItem),
    UpdateItem: ofTable(updateItem),
    DeleteItem: ofTable(deleteItem),
    Query: ofTable(query),
    Scan: ofTable(scan),
    BatchGetItem: ofRequestItems((request, table, prefix, parse) =>
      isRecord(request) ? keysToGet(request, table, prefix, parse) : unreadable,
    ),
    BatchWriteItem: ofRequestItems((requests, table, prefix, parse) =>
      firstOf(requests, (request) => {
        const found = onlyMember(request, writeRequests);
        return found === undefined ? unreadable : found.check(found.input, table, prefix, parse);
      }),
    ),
    TransactGetItems: ofTransaction(gets),
    TransactWriteItems: ofTransaction(actions),
  }),
);

const tenantless = "the run has no tenant";

/** Refuses unknown parameters: legacy ones, and ones that DynamoDB may add. */
function within(known: readonly string[], check: TableCheck): TableCheck {
  const names = new Set(known);
  return (input, table, prefix, parse) => {
    for (const name in input) {
      if (!names.has(name) && input[name] !== undefined)
        return `the parameter ${name} cannot be checked`;
    }
    return check(input, table, prefix, parse);
  };
}

function ofTable(check: TableCheck): OperationCheck {
  return (input, rules) =>
    refusalOf(input["TableName"], rules, (table, prefix) =>
      check(input, table, prefix, rules.parse),
    );
}

function ofRequestItems(
  check: (
    request: unknown,
    table: WalledTable,
    prefix: string,
    parse: Expressions,
  ) => string | undefined,
): OperationCheck {
  return ({ RequestItems: items }, rules) => {
    if (!isRecord(items)) return { table: undefined, reason: unreadable };
    for (const name in items) {
      const refusal = refusalOf(name, rules, (table, prefix) =>
        check(items[name], table, prefix, rules.parse),
      );
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

function ofTransaction(members: Readonly<Record<string, TableCheck>>): OperationCheck {
  return ({ TransactItems: items }, rules) => {
    if (!Array.isArray(items)) return { table: undefined, reason: unreadable };
    for (const item of items as readonly unknown[]) {
      const found = onlyMember(item, members);
      if (found === undefined) return { table: undefined, reason: unreadable };
      const { input, check } = found;
      const refusal = refusalOf(input["TableName"], rules, (table, prefix) =>
        check(input, table, prefix, rules.parse),
      );
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  };
}

function onlyMember(
  item: unknown,
  members: Readonly<Record<string, TableCheck>>,
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

/** Runs a check if the table is walled. */
function refusalOf(
  name: unknown,
  { tables, prefix }: Rules,
  problemOf: (table: WalledTable, prefix: string) => string | undefined,
): Refusal | undefined {
  let table = typeof name === "string" ? tables.get(name) : undefined;
  if (table === undefined) {
    const physical = tableOf(name);
    if (physical === undefined)
      return { table: undefined, reason: "the name of its table cannot be read" };
    table = tables.get(physical);
    if (table === undefined) return undefined;
  }
  const reason = prefix === undefined ? tenantless : problemOf(table, prefix);
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
