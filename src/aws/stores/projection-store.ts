import type {
  ActiveVersion,
  FirstEvent,
  Marked,
  ProjectionStore,
  RebuildState,
} from "../../app/projections/projection-store.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Database } from "../../base/types/database.ts";
import { defined } from "../../base/types/defined.ts";
import { marshalled } from "./claim-store.ts";
import { daysPartition, expiry, firstSort, prefixOf } from "./kept-event-store.ts";
import { numbersIn, tableOf } from "./table.ts";

/**
 * Days by which a mark outlives its event: SQS keeps dead letters this long and may redrive them.
 */
const moreDays = 14;

export function dynamoProjections(
  database: Database,
  tableName: string,
  clock: Clock,
): ProjectionStore {
  const table = tableOf(database, tableName);
  const readActive = async (
    name: string,
    tenantId: string | undefined,
  ): Promise<ActiveVersion | undefined> => {
    const item = await table.get({ pk: partitionOf(name, tenantId), sk: activeSort });
    if (item === undefined) return undefined;
    const { version } = numbersIn(item, "version");
    const { revision, over, overBefore } = item;
    return defined({
      version,
      revision: String(revision),
      over: over === undefined ? undefined : String(over),
      overBefore: overBefore === undefined ? undefined : String(overBefore),
    });
  };
  return {
    active: async (name, tenantId) => {
      const [all, own] = await Promise.all([
        readActive(name, undefined),
        tenantId === undefined ? undefined : readActive(name, tenantId),
      ]);
      return defined({ all, own });
    },
    activate: (name, tenantId, { version, revision, over, overBefore }, before) => {
      const key = { pk: partitionOf(name, tenantId), sk: activeSort };
      // The second alternative covers a retry of the SDK whose first response was lost.
      const isBefore = before === undefined ? "attribute_not_exists(pk)" : "revision = :before";
      return table.put(marshalled({ ...key, tenantId, version, revision, over, overBefore }), {
        ConditionExpression: `${isBefore} OR revision = :revision`,
        ExpressionAttributeValues: marshalled({
          ":revision": revision,
          ":before": before?.revision,
        }),
      });
    },
    isCounted: async (name, version, event) =>
      (await table.get(markKey(name, version, event))) !== undefined,
    mark: (name, version, event, keptDays) => {
      const expiration = expiry(clock.now(), keptDays + moreDays);
      const { tenantId } = event;
      const Item = { ...markKey(name, version, event), tenantId, expiration };
      const ConditionExpression = "attribute_not_exists(pk)";
      return { Put: { TableName: tableName, Item, ConditionExpression } };
    },
    rebuild: async (name, tenantId) => {
      const item = await table.get({ pk: partitionOf(name, tenantId), sk: rebuildSort });
      // Safe: only `saveRebuild` writes the state.
      return item === undefined ? undefined : (JSON.parse(String(item["state"])) as RebuildState);
    },
    saveRebuild: async (name, tenantId, state) => {
      const key = { pk: partitionOf(name, tenantId), sk: rebuildSort };
      await table.put(marshalled({ ...key, tenantId, state: JSON.stringify(state) }));
    },
    endRebuild: async (name, tenantId) => {
      await table.remove(marshalled({ pk: partitionOf(name, tenantId), sk: rebuildSort }));
    },
    firstEvents: async function* (types, tenantId, onPage) {
      if (tenantId === undefined) {
        const firsts = {
          FilterExpression: "sk = :first",
          ExpressionAttributeValues: { ":first": firstSort },
        };
        for await (const { Items = [] } of table.scanAll(firsts, onPage))
          yield* Items.map(firstEvent).filter(({ type }) => types.includes(type));
        return;
      }
      for (const type of types) {
        const item = await table.get({ pk: daysPartition({ tenantId, type }), sk: firstSort });
        if (item !== undefined) yield firstEvent(item);
      }
    },
  };
}

const [activeSort, rebuildSort] = ["active", "rebuild"];

function markKey(name: string, version: number, { tenantId, eventId }: Marked) {
  return { pk: `${prefixOf(tenantId)}mark/${name}@${version}/${eventId}`, sk: "mark" };
}

function partitionOf(name: string, tenantId: string | undefined): string {
  return `${prefixOf(tenantId)}projection/${name}`;
}

function firstEvent({ tenantId, type, keptUntil }: Readonly<Record<string, unknown>>): FirstEvent {
  return {
    tenantId: tenantId === undefined ? undefined : String(tenantId),
    type: String(type),
    keptUntil: keptUntil === undefined ? undefined : Number(keptUntil),
  };
}
