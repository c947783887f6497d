import type {
  ActiveVersion,
  FirstEvent,
  Marked,
  ProjectionStore,
  RebuildState,
} from "../../app/projections/projection-store.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Database } from "../../base/types/database.ts";
import { marshalled } from "./claim-form.ts";
import { isNamed } from "./claim-store.ts";
import { daysPartition, expiry, firstSort, prefixOf } from "./kept-days.ts";

/**
 * Days by which a mark outlives its event. SQS keeps a dead letter for 14 days, and redriving it
 * must not count it twice.
 */
const moreDays = 14;

export function dynamoProjections(
  database: Database,
  tableName: string,
  clock: Clock,
): ProjectionStore {
  const read = async (pk: string, sk: string) => {
    const { GetCommand } = await import("../clients/dynamodb-sdk.ts");
    const { Item } = await database.send(
      new GetCommand({ TableName: tableName, Key: { pk, sk }, ConsistentRead: true }),
    );
    return Item;
  };
  const readActive = async (pk: string): Promise<ActiveVersion | undefined> => {
    const item = await read(pk, activeSort);
    if (item === undefined) return undefined;
    const { version, revision, over } = item;
    return {
      version: Number(version),
      revision: String(revision),
      ...(over === undefined ? {} : { over: String(over) }),
    };
  };
  return {
    active: async (name, tenantId) => {
      const [all, own] = await Promise.all([
        readActive(partitionOf(name, undefined)),
        tenantId === undefined ? undefined : readActive(partitionOf(name, tenantId)),
      ]);
      return { ...(all === undefined ? {} : { all }), ...(own === undefined ? {} : { own }) };
    },
    activate: async (name, tenantId, { version, revision, over }, before) => {
      const { PutItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const facts = {
        version,
        revision,
        ...(over === undefined ? {} : { over }),
        ...whose(tenantId),
      };
      const isSame = { ConditionExpression: "revision = :before" };
      const command = new PutItemCommand({
        TableName: tableName,
        Item: marshalled({ pk: partitionOf(name, tenantId), sk: activeSort, ...facts }),
        ...(before === undefined
          ? { ConditionExpression: "attribute_not_exists(pk)" }
          : { ...isSame, ExpressionAttributeValues: marshalled({ ":before": before.revision }) }),
      });
      try {
        await database.send(command);
        return true;
      } catch (error) {
        if (isNamed(error, "ConditionalCheckFailedException")) return false;
        throw error;
      }
    },
    isCounted: async (name, version, event) => {
      const { pk, sk } = markKey(name, version, event);
      return (await read(pk, sk)) !== undefined;
    },
    mark: (name, version, event, keptDays) => {
      const expiration = expiry(clock.now(), keptDays + moreDays);
      const { tenantId } = event;
      const Item = { ...markKey(name, version, event), tenantId, expiration };
      return {
        Put: { TableName: tableName, Item, ConditionExpression: "attribute_not_exists(pk)" },
      };
    },
    rebuild: async (name, tenantId) => {
      const item = await read(partitionOf(name, tenantId), rebuildSort);
      // Safe: only `saveRebuild` writes it.
      return item === undefined ? undefined : (JSON.parse(String(item["state"])) as RebuildState);
    },
    saveRebuild: async (name, tenantId, state) => {
      const { PutItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const key = { pk: partitionOf(name, tenantId), sk: rebuildSort };
      const Item = marshalled({ ...key, ...whose(tenantId), state: JSON.stringify(state) });
      await database.send(new PutItemCommand({ TableName: tableName, Item }));
    },
    endRebuild: async (name, tenantId) => {
      const { DeleteItemCommand } = await import("../clients/dynamodb-sdk.ts");
      const Key = marshalled({ pk: partitionOf(name, tenantId), sk: rebuildSort });
      await database.send(new DeleteItemCommand({ TableName: tableName, Key }));
    },
    firstEvents: (types, tenantId) =>
      tenantId === undefined
        ? allFirstEvents(database, tableName, types)
        : firstEventsOf(tenantId, types, read),
  };
}

type Read = (pk: string, sk: string) => Promise<Readonly<Record<string, unknown>> | undefined>;

async function* firstEventsOf(
  tenantId: string,
  types: readonly string[],
  read: Read,
): AsyncGenerator<FirstEvent> {
  for (const type of types) {
    const item = await read(daysPartition({ tenantId, type }), firstSort);
    if (item !== undefined) yield firstEvent(item);
  }
}

async function* allFirstEvents(
  database: Database,
  tableName: string,
  types: readonly string[],
): AsyncGenerator<FirstEvent> {
  const { ScanCommand } = await import("../clients/dynamodb-sdk.ts");
  let from: Record<string, unknown> | undefined;
  do {
    const { Items = [], LastEvaluatedKey } = await database.send(
      new ScanCommand({
        TableName: tableName,
        FilterExpression: "sk = :first",
        ExpressionAttributeValues: { ":first": firstSort },
        ExclusiveStartKey: from,
        ConsistentRead: true,
      }),
    );
    yield* Items.map(firstEvent).filter(({ type }) => types.includes(type));
    from = LastEvaluatedKey;
  } while (from !== undefined);
}

function whose(tenantId: string | undefined): Readonly<Record<string, string>> {
  return tenantId === undefined ? {} : { tenantId };
}

const [activeSort, rebuildSort] = ["active", "rebuild"];

function markKey(
  name: string,
  version: number,
  { tenantId, eventId }: Marked,
): { readonly pk: string; readonly sk: string } {
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
