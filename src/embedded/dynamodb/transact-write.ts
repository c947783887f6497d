import type { Clock } from "../../base/process/clock.ts";
import type { Dynalite, Item } from "../service/dynalite.ts";
import {
  type ItemOperation,
  invalidMember,
  isConditionFailure,
  itemOnFailure,
  prepareOperation,
  validationError,
} from "../service/operation.ts";
import { type Input, ServiceError } from "../service/service.ts";
import type { ReadWriteLock } from "./read-write-lock.ts";
import {
  asStructure,
  type CancellationReason,
  refuseLargeTransaction,
  refuseSharedItems,
  transactItems,
  transactionCancelled,
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
type Kind = keyof typeof kinds;

interface TransactOperation extends ItemOperation {
  readonly kind: Kind;
  readonly bytes: number;
}

/**
 * dynalite runs all operations against one write batch, which is committed atomically with the
 * request's token, or discarded.
 */
export async function transactWrite(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  clock: Clock,
  input: Input,
): Promise<object> {
  const items = transactItems(input);
  const token = requestToken(input["ClientRequestToken"], items); // hashed first, because preparing changes the input
  const operations = items.map((item, index) =>
    prepareItem(dynalite, item, `transactItems.${index + 1}.member`),
  );
  refuseLargeTransaction(operations.reduce((sum, { bytes }) => sum + bytes, 0));
  return lock.write(async () => {
    if (token === undefined || !(await isCommitted(dynalite.store, token, clock.now()))) {
      await commit(dynalite, operations, token, clock.now());
    }
    return {};
  });
}

function requestToken(value: unknown, items: readonly unknown[]): TransactionToken | undefined {
  if (value === undefined || value === null) return undefined;
  const token = String(value);
  if (token.length < 1)
    throw invalidMember(token, "clientRequestToken", "have length greater than or equal to 1");
  if (token.length > 36) {
    const shown = token.slice(0, 100);
    throw invalidMember(shown, "clientRequestToken", "have length less than or equal to 36");
  }
  return transactionToken(token, items);
}

function prepareItem(dynalite: Dynalite, item: Input, path: string): TransactOperation {
  const [kind, second] = (["Put", "Update", "Delete", "ConditionCheck"] as const).filter(
    (name) => item[name] !== undefined,
  );
  if (kind === undefined || second !== undefined) {
    throw validationError("TransactItems can only contain one of Check, Put, Update or Delete");
  }
  const member = `${kind.charAt(0).toLowerCase()}${kind.slice(1)}`;
  const request = asStructure(item[kind], `${path}.${member}`);
  if (kind === "ConditionCheck" && typeof request["ConditionExpression"] !== "string") {
    throw invalidMember(null, `${path}.${member}.conditionExpression`, "not be null");
  }
  if (kind === "Update" && typeof request["UpdateExpression"] !== "string") {
    throw invalidMember(null, `${path}.${member}.updateExpression`, "not be null");
  }
  const operation = prepareMember(dynalite, kinds[kind], request, `${path}.${member}`);
  const { Item, Key, ExpressionAttributeValues } = operation.prepared as {
    Item?: Item;
    Key?: Item;
    ExpressionAttributeValues?: Item;
  }; // checked by prepareOperation
  return {
    ...operation,
    kind,
    bytes: dynalite.sizeOf({ ...Item, ...Key, ...ExpressionAttributeValues }),
  };
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
): Promise<void> {
  await refuseSharedItems(dynalite, operations);
  const batch = openWriteBatch(dynalite.store);
  const reasons: CancellationReason[] = [];
  for (const operation of operations) {
    const { store } = operation.kind === "ConditionCheck" ? openWriteBatch(dynalite.store) : batch;
    const run = dynalite.run(operation.operation, operation.prepared, store);
    reasons.push(
      await run.then(
        () => ({ Code: "None" as const }),
        (error: unknown) => reasonOf(dynalite, operation, error),
      ),
    );
  }
  if (reasons.some(({ Code }) => Code !== "None")) throw transactionCancelled(reasons);
  refuseLargeTransaction(batch.items().reduce((sum, item) => sum + dynalite.sizeOf(item), 0));
  await batch.commit(token === undefined ? [] : [tokenRecord(token, nowMs)]);
}

async function reasonOf(
  dynalite: Dynalite,
  operation: TransactOperation,
  error: unknown,
): Promise<CancellationReason> {
  if (!isConditionFailure(error)) return validationReason(error);
  return {
    Code: "ConditionalCheckFailed",
    Message: error.message,
    ...(await itemOnFailure(dynalite, operation)),
  };
}
