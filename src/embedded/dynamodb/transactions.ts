import type { Clock } from "../../base/process/clock.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import {
  type Addressed,
  type Dynalite,
  type Item,
  type ItemOperation,
  isConditionFailure,
  itemOnFailure,
  lowerFirst,
  prepareOperation,
} from "../service/dynalite.ts";
import {
  asStructure,
  dynamoDbError,
  type Input,
  invalidMember,
  missingMember,
  ServiceError,
  validationError,
} from "../service/service.ts";
import { openWriteBatch, type ReadWriteLock } from "./atomic-writes.ts";
import { askedCapacity, capacityOfTransaction } from "./capacity.ts";
import {
  isCommitted,
  type TransactionToken,
  tokenRecord,
  transactionToken,
} from "./transaction-token.ts";

export async function transactGet(dynalite: Dynalite, lock: ReadWriteLock, input: Input) {
  const gets = transactItems(input).map(({ item, path }) => {
    const get = asStructure(item["Get"], `${path}.get`);
    const { TableName, Key, ProjectionExpression, ExpressionAttributeNames } = get;
    if (TableName === undefined) throw missingMember(`${path}.get.tableName`);
    const expression = { ProjectionExpression, ExpressionAttributeNames };
    const asked = { ...askedCapacity(input), ConsistentRead: true };
    const prepared = dynalite.prepare("GetItem", { TableName, Key, ...expression, ...asked });
    const checked = prepared as { TableName: string; Key: Item }; // prepare checked name and key
    return { prepared, table: checked.TableName, of: { key: checked.Key } };
  });
  return lock.read(async () => {
    const run = ({ prepared }: { readonly prepared: object }): Promise<Got> =>
      dynalite.run("GetItem", prepared);
    const answers = await runAll(dynalite, gets, run);
    refuseLargeTransaction(answers.map(({ Item = {} }) => dynalite.sizeOf(Item)));
    const Responses = answers.map(({ Item }) => (Item === undefined ? {} : { Item }));
    return { Responses, ...capacityOfTransaction(answers) };
  });
}

interface Got extends Readonly<Record<string, unknown>> {
  readonly Item?: Item;
}

/** A condition check runs as a deletion whose effect is discarded. */
const kinds = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "DeleteItem",
} as const;

/** dynalite does not require them. */
const required = [
  ["ConditionCheck", "ConditionExpression"],
  ["Update", "UpdateExpression"],
] as const;

export async function transactWrite(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  clock: Clock,
  input: Input,
) {
  const items = transactItems(input);
  const token = requestToken(input); // hashed first, because preparing changes the input
  const asked = askedCapacity(input);
  const operations = items.map(({ item, path }) => prepareItem(dynalite, item, path, asked));
  refuseLargeTransaction(operations.map(({ bytes }) => bytes));
  return lock.write(async () => {
    if (token !== undefined && (await isCommitted(dynalite.store, token, clock.now()))) return {};
    return capacityOfTransaction(await commit(dynalite, operations, token, clock.now()));
  });
}

function requestToken({ ClientRequestToken: value, TransactItems: items }: Input) {
  if (value === undefined || value === null) return undefined;
  const token = String(value);
  const refuse = (constraint: string) =>
    invalidMember(token.slice(0, 100), "clientRequestToken", `have length ${constraint}`);
  if (token.length < 1) throw refuse("greater than or equal to 1");
  if (token.length > 36) throw refuse("less than or equal to 36");
  return transactionToken(token, items);
}

function prepareItem(dynalite: Dynalite, item: Input, itemPath: string, asked: Input) {
  const [kind, second] = (["Put", "Update", "Delete", "ConditionCheck"] as const).filter(
    (name) => item[name] !== undefined,
  );
  if (kind === undefined || second !== undefined)
    throw validationError("TransactItems can only contain one of Check, Put, Update or Delete");
  const path = `${itemPath}.${lowerFirst(kind)}`;
  const request = asStructure(item[kind], path);
  for (const [of, member] of required) {
    if (kind === of && typeof request[member] !== "string")
      throw missingMember(`${path}.${lowerFirst(member)}`);
  }
  const operation = prepareMember(dynalite, kinds[kind], { ...request, ...asked }, path);
  // prepareOperation checked these members.
  const { Item, Key, ExpressionAttributeValues } = operation.prepared as Record<string, Item>;
  const bytes = dynalite.sizeOf({ ...Item, ...Key, ...ExpressionAttributeValues });
  return { ...operation, kind, bytes };
}

function prepareMember(
  dynalite: Dynalite,
  operation: ItemOperation["operation"],
  request: Input,
  path: string,
) {
  try {
    return prepareOperation(dynalite, operation, request);
  } catch (error) {
    const { type, message } = error as ServiceError; // prepareOperation only throws ServiceError
    const located = message.replaceAll(/Value (null|'[^']{0,200}') at '/g, `$&${path}.`);
    throw new ServiceError(type, located);
  }
}

async function commit(
  dynalite: Dynalite,
  operations: readonly ReturnType<typeof prepareItem>[],
  token: TransactionToken | undefined,
  nowMs: number,
) {
  const batch = openWriteBatch(dynalite.store);
  const answers = await runAll(
    dynalite,
    operations,
    ({ kind, operation, prepared }) => {
      const { store } = kind === "ConditionCheck" ? openWriteBatch(dynalite.store) : batch;
      return dynalite.run(operation, prepared, store);
    },
    async (error, operation) => {
      if (!isConditionFailure(error)) return validationReason(error);
      const item = await itemOnFailure(dynalite, operation);
      return { Code: "ConditionalCheckFailed", Message: error.message, ...item };
    },
  );
  refuseLargeTransaction(batch.items().map((item) => dynalite.sizeOf(item)));
  await batch.commit(token === undefined ? [] : [tokenRecord(token, nowMs)]);
  return answers;
}

interface CancellationReason {
  readonly Code: "None" | "ConditionalCheckFailed" | "ValidationError";
  readonly Message?: string;
  readonly Item?: object;
}

interface Operation {
  readonly table: string;
  readonly of: Addressed;
}

const maxItems = 100;
const { maxBytes } = serviceSizes.dynamodbTransaction;

/** Each with its path in error messages: `transactItems.1.member`. */
function transactItems({ TransactItems: items }: Input) {
  const path = "transactItems";
  if (!Array.isArray(items)) throw missingMember(path);
  if (items.length < 1) throw invalidMember("[]", path, "have length greater than or equal to 1");
  if (items.length > maxItems) {
    const constraint = `have length less than or equal to ${maxItems}`;
    throw invalidMember(`[${items.length} items]`, path, constraint);
  }
  return items.map((item: unknown, index) => {
    const member = `${path}.${index + 1}.member`;
    return { item: asStructure(item, member), path: member };
  });
}

/** @throws ServiceError if two operations use one item, or with all failures. */
async function runAll<Prepared extends Operation, Answer>(
  dynalite: Dynalite,
  operations: readonly Prepared[],
  run: (operation: Prepared) => Promise<Answer>,
  reasonOf: (
    error: unknown,
    operation: Prepared,
  ) => CancellationReason | Promise<CancellationReason> = validationReason,
): Promise<readonly Answer[]> {
  await refuseSharedItems(dynalite, operations);
  const answers: Answer[] = [];
  const reasons: CancellationReason[] = [];
  for (const operation of operations) {
    try {
      answers.push(await run(operation));
      reasons.push({ Code: "None" });
    } catch (error) {
      reasons.push(await reasonOf(error, operation));
    }
  }
  if (answers.length === operations.length) return answers;
  const codes = reasons.map(({ Code }) => Code).join(", ");
  throw dynamoDbError(
    "TransactionCanceledException",
    `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes}]`,
    { CancellationReasons: reasons },
  );
}

function refuseLargeTransaction(sizes: readonly number[]): void {
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  if (bytes > maxBytes)
    throw validationError(`Transaction payload size cannot exceed 4MB. Payload Size: ${bytes}`);
}

function validationReason(error: unknown): CancellationReason {
  if (!(error instanceof ServiceError) || !error.type.endsWith("#ValidationException")) throw error;
  return { Code: "ValidationError", Message: error.message };
}

async function refuseSharedItems(dynalite: Dynalite, operations: readonly Operation[]) {
  const seen = new Set<string>();
  for (const operation of operations) {
    const place = await placeOf(dynalite, operation);
    if (place === undefined) continue;
    if (seen.has(place))
      throw validationError("Transaction request cannot include multiple operations on one item");
    seen.add(place);
  }
}

/** `undefined` for an invalid key, which the operation itself reports. */
async function placeOf(dynalite: Dynalite, { table, of }: Operation) {
  const description = await dynalite.table(table);
  try {
    return `${table}/${dynalite.placeOf(description, of)}`;
  } catch {
    return undefined;
  }
}
