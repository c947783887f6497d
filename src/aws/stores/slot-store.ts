import { isRecord } from "../../base/errors/option-table.ts";
import { quoted } from "../../base/errors/quoted.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { Clock } from "../../base/process/clock.ts";
import type { Database } from "../../base/types/database.ts";
import type {
  AddedHolder,
  PlacedRow,
  SlotHolder,
  SlotPlace,
  SlotStore,
} from "../../parts/limits/slot.ts";
import { createSlots, type Waiting } from "../../parts/limits/slots.ts";
import type { Item } from "./claim-item.ts";
import { dynamoClaimStore, marshalled } from "./claim-store.ts";
import { dynamoLines } from "./line-store.ts";
import { isNamed, malformedRow, numberIn, tableOf } from "./table.ts";

export function openSlots(
  database: Database,
  tableName: string,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Logger, "warn"> },
): Waiting {
  const store = dynamoSlots(database, tableName);
  const claims = dynamoClaimStore(database, tableName);
  const slots = createSlots({ store, claims, clock }, { isThrottle, log });
  return { ...slots, lines: dynamoLines(database, tableName) };
}

function isThrottle(error: unknown): boolean {
  return isNamed(
    error,
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
  );
}

/** One row for each place, in the table of claims. A holder is an entry of the map `holders`. */
export function dynamoSlots(database: Database, tableName: string): SlotStore {
  const table = tableOf(database, tableName);
  return {
    read: async (place) => {
      const item = await table.get(keyOf(place));
      return item === undefined ? undefined : holdersOf(item);
    },
    add: async (place, added) => {
      if (!added.hasRow)
        return table.put(newRow(place, added), { ConditionExpression: "attribute_not_exists(pk)" });
      const changed = await table.update(marshalled(keyOf(place)), additionOf(added));
      return changed !== undefined;
    },
    remove: async (place, owners) => {
      const names = Object.fromEntries(owners.map((owner, index) => [`#o${index}`, owner]));
      const removed = Object.keys(names).map((name) => `holders.${name}`);
      await table.update(marshalled(keyOf(place)), {
        UpdateExpression: `REMOVE ${removed.join(", ")}`,
        ConditionExpression: "attribute_exists(pk)",
        ExpressionAttributeNames: names,
      });
    },
    list: async (handler) => {
      const found: PlacedRow[] = [];
      const pages = table.queryAll({
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": partitionOf(handler) },
      });
      for await (const { Items = [] } of pages)
        found.push(
          ...Items.map((item) => ({ place: placeOf(handler, item), holders: holdersOf(item) })),
        );
      return found;
    },
  };
}

function placeOf(handler: string, { sk, tenantId }: Readonly<Record<string, unknown>>): SlotPlace {
  if (sk === "total") return { handler, limit: "total" };
  return { handler, limit: "perTenant", tenantId: tenantId as string | undefined }; // safe: only `newRow` writes it
}

function partitionOf(handler: string): string {
  return `slots#${handler}`;
}

/** A tenant's row has its ID, so that it is erased with the tenant. */
function keyOf({ handler, limit, tenantId }: SlotPlace) {
  const sk = limit === "total" ? "total" : tenantId === undefined ? "tenant" : `tenant#${tenantId}`;
  return { pk: partitionOf(handler), sk };
}

function newRow(place: SlotPlace, { holder, expiresAt }: AddedHolder): Item {
  return {
    ...marshalled({ ...keyOf(place), tenantId: place.tenantId, expiration: expiresAt }),
    holders: { M: { [holder.owner]: entryOf(holder) } },
  };
}

function entryOf({ key: { partition, sort }, sinceMs }: SlotHolder) {
  return { M: marshalled({ pk: partition, sk: sort, since: sinceMs }) };
}

function additionOf({ holder, most, expiresAt }: AddedHolder) {
  return {
    UpdateExpression: "SET holders.#owner = :entry, expiration = :expiration",
    // The size of a map is the number of its entries.
    ConditionExpression: "size(holders) < :most",
    ExpressionAttributeNames: { "#owner": holder.owner },
    ExpressionAttributeValues: {
      ...marshalled({ ":most": most, ":expiration": expiresAt }),
      ":entry": entryOf(holder),
    },
  };
}

/** @throws Error for a row that was changed by hand, whose holders cannot be determined. */
function holdersOf(item: Readonly<Record<string, unknown>>): readonly SlotHolder[] {
  const { holders } = item;
  if (!isRecord(holders)) throw malformedRow(item, "it has no holders");
  return Object.entries(holders).map(([owner, holder]) => {
    const { pk: partition, sk: sort, since } = Object(holder);
    if (typeof partition !== "string" || typeof sort !== "string")
      throw malformedRow(item, `the holder ${quoted(owner)} has no claim`);
    return { owner, key: { partition, sort }, sinceMs: numberIn(since) };
  });
}
