import { quoted } from "../../base/errors/quoted.ts";
import { isIdentifier } from "../../base/identity/access.ts";
import type { Database } from "../../base/types/database.ts";
import { defined } from "../../base/types/defined.ts";
import {
  type ApiKey,
  type ApiKeyStore,
  keyPartition,
  maxKeys,
  type SecretOwner,
  secretPartition,
} from "../../parts/api-keys/api-key.ts";
import { marshalled } from "./claim-store.ts";
import { numberIn, numbersIn, tableOf, transact } from "./table.ts";

const secretKey = (hash: string) => ({ pk: `${secretPartition}${hash}`, sk: "secret" });
const partitionOf = (tenantId: string) => `${keyPartition}${tenantId}`;
const recordKey = (tenantId: string, id: string) => ({
  pk: partitionOf(tenantId),
  sk: `key#${id}`,
});
const countKey = (tenantId: string) => ({ pk: partitionOf(tenantId), sk: "count" });

/** Time for which DynamoDB keeps a secret that has ended, in seconds. */
const keptSeconds = 86_400;

/**
 * Rows in the table of claims. A key has its record in a partition of the tenant, and each secret
 * has a row under its hash with tenant and roles, so that a request needs one read.
 */
export function dynamoApiKeys(database: Database, tableName: string): ApiKeyStore {
  const table = tableOf(database, tableName);
  const at = <Key>(Key: Key) => ({ TableName: tableName, Key });
  return {
    find: async (hash) => {
      const item = await table.get(secretKey(hash));
      return item && ownerOf(item);
    },
    read: async (tenantId, id) => {
      if (!isIdentifier(id)) return undefined; // it may be longer than a sort key
      const item = await table.get(recordKey(tenantId, id));
      return item && keyOf(item as StoredKey); // safe: only this store writes such rows
    },
    list: async (tenantId) => {
      const keys: ApiKey[] = [];
      const pages = table.queryAll({
        KeyConditionExpression: "pk = :partition AND begins_with(sk, :key)",
        ExpressionAttributeValues: { ":partition": partitionOf(tenantId), ":key": "key#" },
      });
      for await (const { Items = [] } of pages) keys.push(...Items.map(listedKey));
      return keys.sort((one, other) => one.createdMs - other.createdMs);
    },
    noteUse: async ({ tenantId, id }, nowMs, beforeMs) => {
      await table.update(marshalled(recordKey(tenantId, id)), {
        UpdateExpression: "SET lastUsedMs = :now",
        ConditionExpression:
          "attribute_exists(pk) AND (attribute_not_exists(lastUsedMs) OR lastUsedMs <= :before)",
        ExpressionAttributeValues: marshalled({ ":now": nowMs, ":before": beforeMs }),
      });
    },
    added: (key) => [
      { Update: { ...at(countKey(key.tenantId)), ...counted(key.tenantId, 1) } },
      { Put: { TableName: tableName, Item: recordItem(key), ...absent } },
      { Put: { TableName: tableName, Item: secretItem(key.hash, key, key.expiresMs), ...absent } },
    ],
    rotated: (key, { hash, formerEndsMs, nowMs }) => [
      {
        Update: {
          ...at(recordKey(key.tenantId, key.id)),
          UpdateExpression: "SET #hash = :next, formerHash = :seen",
          ConditionExpression: "#hash = :seen",
          ExpressionAttributeNames: { "#hash": "hash" },
          ExpressionAttributeValues: { ":next": hash, ":seen": key.hash },
        },
      },
      { Put: { TableName: tableName, Item: secretItem(hash, key, key.expiresMs), ...absent } },
      formerEndsMs <= nowMs
        ? { Delete: at(secretKey(key.hash)) }
        : { Put: { TableName: tableName, Item: secretItem(key.hash, key, formerEndsMs) } },
      ...(key.formerHash === undefined ? [] : [{ Delete: at(secretKey(key.formerHash)) }]),
    ],
    removed: (key) => [
      {
        Delete: {
          ...at(recordKey(key.tenantId, key.id)),
          ConditionExpression: "#hash = :seen",
          ExpressionAttributeNames: { "#hash": "hash" },
          ExpressionAttributeValues: { ":seen": key.hash },
        },
      },
      ...[key.hash, key.formerHash].flatMap((hash) =>
        hash === undefined ? [] : [{ Delete: at(secretKey(hash)) }],
      ),
      { Update: { ...at(countKey(key.tenantId)), ...counted(key.tenantId, -1) } },
    ],
    write: async (items) => {
      const failed = await transact(database, [...items]);
      if (failed === undefined) return;
      if (!failed.codes.includes("ConditionalCheckFailed")) throw failed.error;
      const message = "the API key has changed since it was read; try again";
      throw new Error(message, { cause: failed.error });
    },
  };
}

interface StoredKey {
  readonly id: string;
  readonly tenantId: string;
  readonly roles: readonly string[];
  readonly name: string;
  readonly createdMs: number;
  readonly expiresMs?: number;
  readonly lastUsedMs?: number;
  readonly hash: string;
  readonly formerHash?: string;
}

/** A row that was changed by hand must never yield a caller without a tenant, or a key that never ends. */
function ownerOf({ id, tenantId, roles, endsMs }: Readonly<Record<string, unknown>>): SecretOwner {
  const isWhole = isIdentifier(id) && isIdentifier(tenantId) && isNames(roles);
  const until = endsMs === undefined ? undefined : numberIn(endsMs);
  if (isWhole && !Number.isNaN(until)) return { id, tenantId, roles, endsMs: until };
  throw new Error(`the row of the API key ${quoted(id)} is not in a form that keelson writes`);
}

function isNames(roles: unknown): roles is readonly string[] {
  return Array.isArray(roles) && roles.every(isIdentifier);
}

/** @throws Error that names the row, if one of its times is not a number. */
function listedKey(item: Readonly<Record<string, unknown>>): ApiKey {
  const times = ["expiresMs", "lastUsedMs"].filter((name) => item[name] !== undefined);
  return keyOf({ ...item, ...numbersIn(item, "createdMs", ...times) } as unknown as StoredKey); // safe: only this store writes such rows
}

function keyOf({ id, tenantId, name, roles, createdMs, hash, ...rest }: StoredKey): ApiKey {
  const { expiresMs, lastUsedMs, formerHash } = rest;
  return { id, tenantId, name, roles, createdMs, expiresMs, lastUsedMs, hash, formerHash };
}

const absent = { ConditionExpression: "attribute_not_exists(pk)" };

function recordItem(key: ApiKey) {
  return { ...recordKey(key.tenantId, key.id), ...defined({ ...key }) };
}

/** A secret that ends has a time to live. DynamoDB deletes it late, and the time itself is exact. */
function secretItem(hash: string, { id, tenantId, roles }: ApiKey, endsMs: number | undefined) {
  const expiration = endsMs && Math.ceil(endsMs / 1_000) + keptSeconds;
  return { ...secretKey(hash), id, tenantId, roles, ...defined({ endsMs, expiration }) };
}

function counted(tenantId: string, by: 1 | -1) {
  const isBelow = "attribute_not_exists(#keys) OR #keys < :max";
  return {
    UpdateExpression: "SET tenantId = :tenant ADD #keys :by",
    ...(by === 1 ? { ConditionExpression: isBelow } : {}),
    ExpressionAttributeNames: { "#keys": "keys" },
    ExpressionAttributeValues: {
      ":tenant": tenantId,
      ":by": by,
      ...(by === 1 ? { ":max": maxKeys } : {}),
    },
  };
}
