import type { CommitItem, Database } from "../../base/types/database.ts";
import { defined } from "../../base/types/defined.ts";
import {
  registryPartition,
  type StoredTenant,
  type TenantPlace,
  type TenantStore,
} from "../../parts/tenant-registry/tenant.ts";
import { marshalled } from "./claim-store.ts";
import { tableOf, transactIf } from "./table.ts";

const tenantKey = (tenantId: string) => ({ pk: `${registryPartition}#${tenantId}`, sk: "tenant" });
/** No time zone contains `#`. */
const listKey = ({ timeZone, tenantId }: TenantPlace) => ({
  pk: registryPartition,
  sk: `${timeZone}#${tenantId}`,
});
const zonePartition = `${registryPartition}/zones`;

/**
 * Rows in the table of claims that never expire. A tenant has a row in its own partition, so that
 * checks of many tenants do not share one, and a copy in the list, which is sorted by time zone.
 */
export function dynamoTenants(database: Database, tableName: string): TenantStore {
  const table = tableOf(database, tableName);
  const write = (items: CommitItem[]) => transactIf(database, items);
  const keysOf = (tenant: StoredTenant) => [tenantKey(tenant.tenantId), listKey(tenant)] as const;
  return {
    read: async (tenantId) => {
      const item = await table.get(tenantKey(tenantId));
      return item && tenantOf(item as StoredTenant); // safe: only this store writes such rows
    },
    add: async (tenant) => {
      const { timeZone, createdMs } = tenant;
      // Before the tenant: a time zone without tenants does no harm.
      await table.put(marshalled({ pk: zonePartition, sk: timeZone, sinceMs: createdMs }), absent);
      const item = defined({ ...tenant });
      return write(
        keysOf(tenant).map((key) => ({
          Put: { TableName: tableName, Item: { ...key, ...item }, ...absent },
        })),
      );
    },
    change: async (tenant, changed) => {
      const change =
        changed === undefined
          ? { UpdateExpression: "REMOVE suspendedMs, reason" }
          : { UpdateExpression: "SET suspendedMs = :next, reason = :reason" };
      return write(
        keysOf(tenant).map((Key) => ({
          Update: {
            ...{ TableName: tableName, Key, ...change },
            ConditionExpression: asRead(tenant),
            ...valuesOf({
              ":seen": tenant.suspendedMs,
              ":next": changed?.suspendedMs,
              ":reason": changed?.reason,
            }),
          },
        })),
      );
    },
    remove: async (tenant) =>
      tenant.suspendedMs !== undefined &&
      write(
        keysOf(tenant).map((Key) => ({
          Delete: {
            ...{ TableName: tableName, Key },
            ConditionExpression: asRead(tenant),
            ...valuesOf({ ":seen": tenant.suspendedMs }),
          },
        })),
      ),
    page: async (limit, after, timeZone) => {
      const { Items = [], LastEvaluatedKey: last } = await table.query({
        KeyConditionExpression: `pk = :list${timeZone === undefined ? "" : " AND begins_with(sk, :zone)"}`,
        ExpressionAttributeValues: {
          ":list": registryPartition,
          ...(timeZone === undefined ? {} : { ":zone": `${timeZone}#` }),
        },
        Limit: limit,
        ...(after && { ExclusiveStartKey: listKey(after) }),
      });
      const items = Items.map((item) => tenantOf(item as StoredTenant)); // safe: only this store writes such rows
      return { items, next: last === undefined ? undefined : items.at(-1) };
    },
    timeZones: async () => {
      const zones = [];
      const pages = table.queryAll({
        KeyConditionExpression: "pk = :zones",
        ExpressionAttributeValues: { ":zones": zonePartition },
      });
      for await (const { Items = [] } of pages)
        for (const { sk, sinceMs } of Items)
          zones.push({ timeZone: String(sk), sinceMs: Number(sinceMs) });
      return zones;
    },
  };
}

const absent = { ConditionExpression: "attribute_not_exists(pk)" };

function asRead({ suspendedMs }: StoredTenant): string {
  if (suspendedMs !== undefined) return "suspendedMs = :seen";
  return "attribute_exists(pk) AND attribute_not_exists(suspendedMs)";
}

/** DynamoDB refuses an empty list of values. */
function valuesOf(values: Readonly<Record<string, string | number | undefined>>) {
  const given = defined(values);
  return Object.keys(given).length === 0 ? {} : { ExpressionAttributeValues: given };
}

function tenantOf(stored: StoredTenant): StoredTenant {
  const { tenantId, name, timeZone, createdMs, suspendedMs, reason } = stored;
  return { tenantId, name, timeZone, createdMs, suspendedMs, reason };
}
