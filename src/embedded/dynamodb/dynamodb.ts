import { type Clock, systemClock } from "../../base/process/clock.ts";
import {
  type Dynalite,
  isConditionFailure,
  itemOnFailure,
  openDynalite,
  prepareOperation,
  rangeOf,
} from "../service/dynalite.ts";
import { type Input, ServiceError } from "../service/service.ts";
import { createReadWriteLock, openWriteBatch, type ReadWriteLock } from "./atomic-writes.ts";
import { withLeastCapacity } from "./capacity.ts";
import { changeIndexes, changesIndexes, changeTable, settleTables } from "./table-changes.ts";
import {
  describeTimeToLive,
  type SweepStart,
  sweepExpired,
  tablesWithTimeToLive,
  updateTimeToLive,
} from "./time-to-live.ts";
import { dropOldTokens, tokenPrefix } from "./transaction-token.ts";
import { transactGet, transactWrite } from "./transactions.ts";

const pauseMs = 10_000;
const contents = [rangeOf("item-"), rangeOf("index-"), rangeOf(tokenPrefix)];
const limits = { tables: 20, items: 100, tokens: 1000 };

export type DynamoDb = Awaited<ReturnType<typeof openDynamoDb>>;

/** dynalite with atomic writes, transactions, time to live and the item on a failed condition. */
export async function openDynamoDb({
  path,
  clock = systemClock,
  reportFault = () => {},
}: {
  path?: string | undefined;
  clock?: Clock;
  reportFault?: (error: unknown) => void;
} = {}) {
  const dynalite = await openDynalite(path);
  await settleTables(dynalite);
  const lock = createReadWriteLock();
  const sweep = createSweep(dynalite, lock, clock);
  const sweepLater = () => void sweep().catch(reportFault);
  return {
    targetPrefix: "DynamoDB_20120810.",
    async call(operation: string, input: Input): Promise<object> {
      switch (operation) {
        case "TransactWriteItems":
          return transactWrite(dynalite, lock, clock, input).finally(sweepLater);
        case "TransactGetItems":
          return transactGet(dynalite, lock, input);
        case "UpdateTimeToLive":
          return lock.write(() => updateTimeToLive(dynalite, input));
        case "DescribeTimeToLive":
          return lock.read(() => describeTimeToLive(dynalite, input));
        case "PutItem":
        case "UpdateItem":
        case "DeleteItem":
          return writeItem(dynalite, lock, operation, input).finally(sweepLater);
        default:
          if (operation === "UpdateTable" && changesIndexes(input))
            return lock.write(() => changeIndexes(dynalite, input));
          return callDynalite(dynalite, lock, operation, input);
      }
    },
    abandon: dynalite.abandon,
    /** Deletes all items and transaction tokens, but no table. */
    clear: () =>
      lock.write(async () => {
        for (const range of contents) await dynalite.store.db.clear(range);
      }),
    close: () => lock.write(() => dynalite.store.db.close()),
  };
}

async function writeItem(
  dynalite: Dynalite,
  lock: ReadWriteLock,
  name: "PutItem" | "UpdateItem" | "DeleteItem",
  input: Input,
) {
  const operation = prepareOperation(dynalite, name, input);
  return lock.write(async () => {
    try {
      return await writeAtomically(dynalite, name, operation.prepared);
    } catch (error) {
      if (!isConditionFailure(error)) throw error;
      throw new ServiceError(error.type, error.message, {
        members: await itemOnFailure(dynalite, operation),
      });
    }
  });
}

async function callDynalite(dynalite: Dynalite, lock: ReadWriteLock, name: string, input: Input) {
  const kind = dynalite.kindOf(name);
  const prepared = dynalite.prepare(name, input);
  if (kind === "read")
    return withLeastCapacity(await lock.read(() => dynalite.run(name, prepared)), input);
  if (kind === "table") return lock.write(() => changeTable(dynalite, name, prepared));
  return lock.write(() => writeAtomically(dynalite, name, prepared));
}

async function writeAtomically(dynalite: Dynalite, operation: string, prepared: object) {
  const batch = openWriteBatch(dynalite.store);
  const answer = await dynalite.run(operation, prepared, batch.store);
  await batch.commit();
  return answer;
}

/** Sweeps expired items and tokens, and locks for one page of one table at a time. */
function createSweep(dynalite: Dynalite, lock: ReadWriteLock, clock: Clock) {
  const starts = new Map<string, SweepStart>();
  let lastTable = "";
  let tokenCursor = "";
  let dueAtMs = 0;
  return async () => {
    const nowMs = clock.now();
    if (nowMs < dueAtMs) return;
    dueAtMs = nowMs + pauseMs;
    await lock.write(async () => {
      tokenCursor = await dropOldTokens(dynalite.store, nowMs, limits.tokens, tokenCursor);
    });
    for (const table of await tablesWithTimeToLive(dynalite.store, limits.tables, lastTable)) {
      lastTable = table;
      await lock.write(async () => {
        const page = { table, limit: limits.items, start: starts.get(table) };
        const next = await sweepExpired(dynalite, page, nowMs);
        if (next === undefined) starts.delete(table);
        else starts.set(table, next);
      });
    }
  };
}
