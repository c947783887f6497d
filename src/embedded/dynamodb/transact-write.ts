import type { Clock } from "../../base/process/clock.ts";
import { type Dynalite, type Item, lowerFirst } from "../service/dynalite.ts";
import {
  type ItemOperation,
  invalidMember,
  isConditionFailure,
  itemOnFailure,
  missingMember,
  prepareOperation,
  validationError,
} from "../service/operation.ts";
import { type Input, ServiceError } from "../service/service.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import {
  asStructure,
  type CancellationReason,
  refuseLargeTransaction,
  runAll,
  transactItems,
  validationReason,
} from "./transaction-items.ts";
import {
  isCommitted,
  type TransactionToken,
  tokenRecord,
  transactionToken,
} from "./transaction-token.ts";
import { openWriteBatch } from "./write-batch.ts";

/** A condition check runs as a deletion whose effect is discarded. */
const kinds = {
  Put: "PutItem",
  Update: "UpdateItem",
  Delete: "DeleteItem",
  ConditionCheck: "DeleteItem",
} as const;

/** Expressions that a transaction requires but dynalite does not. */
const required = [
  ["ConditionCheck", "ConditionExpression"],
  ["Update", "UpdateExpression"],
] as const;

interface TransactOperation extends ItemOperation {
  readonly kind: keyof typeof kinds;
  readonly bytes: number;
}

/** Runs all operations against one write batch, which commits with the request's token. */
export async function transactWrite(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  clock: Clock,
  input: Input,
): Promise<object> {
  const items = transactItems(input);
  const token = requestToken(input); // hashed first, because preparing changes the input
  const operations = items.map(({ item, path }) => prepareItem(dynalite, item, path));
  refuseLargeTransaction(operations.map(({ bytes }) => bytes));
  return lock.write(async () => {
    if (token === undefined || !(await isCommitted(dynalite.store, token, clock.now())))
      await commit(dynalite, operations, token, clock.now());
    return {};
  });
}

function requestToken({
  ClientRequestToken: value,
  TransactItems: items,
}: Input): TransactionToken | undefined {
  if (value === undefined || value === null) return undefined;
  const token = String(value);
  const refuse = (constraint: string) =>
    invalidMember(token.slice(0, 100), "clientRequestToken", `have length ${constraint}`);
  if (token.length < 1) throw refuse("greater than or equal to 1");
  if (token.length > 36) throw refuse("less than or equal to 36");
  return transactionToken(token, items);
}

function prepareItem(dynalite: Dynalite, item: Input, itemPath: string): TransactOperation {
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
  const operation = prepareMember(dynalite, kinds[kind], request, path);
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
): ItemOperation {
  try {
    return prepareOperation(dynalite, operation, request);
  } catch (error) {
    const { type, message } = error as ServiceError; // prepareOperation only throws ServiceError
    throw new ServiceError(
      type,
      message.replaceAll(/Value (null|'[^']{0,200}') at '/g, `$&${path}.`),
    );
  }
}

async function commit(
  dynalite: Dynalite,
  operations: readonly TransactOperation[],
  token: TransactionToken | undefined,
  nowMs: number,
) {
  const batch = openWriteBatch(dynalite.store);
  await runAll(
    dynalite,
    operations,
    ({ kind, operation, prepared }) => {
      const { store } = kind === "ConditionCheck" ? openWriteBatch(dynalite.store) : batch;
      return dynalite.run(operation, prepared, store);
    },
    async (error, operation): Promise<CancellationReason> =>
      isConditionFailure(error)
        ? {
            Code: "ConditionalCheckFailed",
            Message: error.message,
            ...(await itemOnFailure(dynalite, operation)),
          }
        : validationReason(error),
  );
  refuseLargeTransaction(batch.items().map((item) => dynalite.sizeOf(item)));
  await batch.commit(token === undefined ? [] : [tokenRecord(token, nowMs)]);
}
