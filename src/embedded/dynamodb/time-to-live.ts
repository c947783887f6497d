import {
  type Change,
  type Dynalite,
  existingTable,
  type Item,
  namesUnder,
  type Store,
} from "../service/dynalite.ts";
import {
  asStructure,
  type Input,
  invalidMember,
  missingMember,
  validationError,
} from "../service/service.ts";
import { openWriteBatch } from "./atomic-writes.ts";

const prefix = "keelson-ttl~";
/** DynamoDB keeps items that expired more than five years ago. */
const oldestSeconds = 5 * 365 * 24 * 60 * 60;

export async function updateTimeToLive(dynalite: Dynalite, input: Input) {
  const { TableName: table } = await existingTable(dynalite, input);
  const path = "timeToLiveSpecification";
  const given = asStructure(input["TimeToLiveSpecification"], path);
  const { Enabled: enabled, AttributeName: attribute } = given;
  if (typeof enabled !== "boolean") throw missingMember(`${path}.enabled`);
  if (typeof attribute !== "string") throw missingMember(`${path}.attributeName`);
  const shown = attribute.slice(0, 100);
  if (attribute.length < 1 || attribute.length > 255)
    throw invalidMember(shown, `${path}.attributeName`, "have length from 1 to 255");
  const current = await timeToLiveOf(dynalite.store, table);
  if (!enabled && current === undefined) throw validationError("TimeToLive is already disabled");
  if (current !== undefined && current !== attribute)
    throw validationError(
      `TimeToLive is active on a different AttributeName: current AttributeName is ${current}`,
    );
  if (enabled && current !== undefined) throw validationError("TimeToLive is already enabled");
  const put = { type: "put", key: prefix + table, value: attribute } as const;
  await dynalite.store.db.batch([enabled ? put : forgetTimeToLive(table)]);
  return { TimeToLiveSpecification: { Enabled: enabled, AttributeName: attribute } };
}

export async function describeTimeToLive(dynalite: Dynalite, input: Input) {
  const { TableName } = await existingTable(dynalite, input);
  const AttributeName = await timeToLiveOf(dynalite.store, TableName);
  const TimeToLiveStatus = AttributeName === undefined ? "DISABLED" : "ENABLED";
  return { TimeToLiveDescription: { TimeToLiveStatus, AttributeName } };
}

export function forgetTimeToLive(table: string): Change {
  return { type: "del", key: prefix + table };
}

/** Returns up to `limit` tables, from the one after `last` on, in turn. */
export async function tablesWithTimeToLive(
  store: Store,
  limit: number,
  last: string,
): Promise<readonly string[]> {
  const names = await namesUnder(store, prefix);
  const isNext = (name: string) => name > last;
  return [...names.filter(isNext), ...names.filter((name) => !isNext(name))].slice(0, limit);
}

/** Position in a table, which another table of the same name does not have. */
export interface SweepStart {
  readonly tableId: string;
  readonly key: Item;
}

/** Checks `limit` items, under the write lock. Returns the next `start`; `undefined` is the first. */
export async function sweepExpired(
  dynalite: Dynalite,
  { table, limit, start }: { table: string; limit: number; start: SweepStart | undefined },
  nowMs: number,
): Promise<SweepStart | undefined> {
  const attribute = await timeToLiveOf(dynalite.store, table);
  if (attribute === undefined) return undefined; // disabled since the table was listed
  const { KeySchema, TableId: tableId } = await dynalite.table(table);
  const from = start?.tableId === tableId ? { ExclusiveStartKey: start.key } : {};
  const scan = { TableName: table, Limit: limit, ...from };
  const page = await dynalite.run("Scan", dynalite.prepare("Scan", scan));
  const { Items, LastEvaluatedKey: key } = page as { Items: Item[]; LastEvaluatedKey?: Item }; // shape of a Scan response
  const batch = openWriteBatch(dynalite.store);
  for (const item of Items.filter((one) => isExpired(one[attribute]?.["N"], nowMs / 1000))) {
    const Key = Object.fromEntries(KeySchema.map(({ AttributeName: name }) => [name, item[name]]));
    const deletion = dynalite.prepare("DeleteItem", { TableName: table, Key });
    await dynalite.run("DeleteItem", deletion, batch.store);
  }
  await batch.commit();
  return key && { tableId, key };
}

function isExpired(value: unknown, nowSeconds: number) {
  const seconds = typeof value === "string" ? Number(value) : NaN;
  return seconds < nowSeconds && seconds > nowSeconds - oldestSeconds;
}

async function timeToLiveOf(store: Store, table: string) {
  return (await store.db.get(prefix + table)) as string | undefined; // only updateTimeToLive writes it
}
