// The same work with Powertools, against the same meter.
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { createDatabase } from "../../src/aws/clients/dynamodb.ts";
import * as sdk from "../../src/aws/clients/dynamodb-sdk.ts";
import { ensureTables } from "../../src/aws/tables/tables.ts";
import type { Bill, Meter } from "./meter.ts";
import { textOf } from "./works.ts";

/** Parameters reads a key by one GetItem for each level (`config-cold-calls` in bench/results.json). */
const [keys, levels] = [11, 3];

/** Charges of Powertools Idempotency and Parameters, by the name of our work. */
export async function measuredPeers(
  meter: Meter,
  bytes: number,
): Promise<Readonly<Record<string, Bill>>> {
  const account = {
    endpoint: meter.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  };
  const database = createDatabase(sdk, account);
  const [claims, items, parameters] = ["claims", "items", "parameters"].map(
    (name) => `peer-${name}-${bytes}`,
  ) as [string, string, string]; // safe: three names
  const declared = { partitionKey: "id", sortKey: undefined, indexes: [] } as const;
  for (const tableName of [claims, items, parameters])
    await ensureTables(database, [{ ...declared, name: tableName, tableName }], "create");
  const client = new DynamoDBClient(account);
  const bus = new EventBridgeClient(account);
  const config = new IdempotencyConfig({ eventKeyJmesPath: "id", useLocalCache: false });
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 30_000 } as never); // the part that is read
  const persistenceStore = new DynamoDBPersistenceLayer({
    tableName: claims,
    awsSdkV3Client: client,
  });
  const text = textOf(bytes);
  const idempotent = (work: () => Promise<unknown>) =>
    makeIdempotent(async (_event: { readonly id: string }) => await work(), {
      persistenceStore,
      config,
    });
  const note = idempotent(async () => ({ text }));
  const create = idempotent(async () => {
    const Item = { id: { S: "item" }, text: { S: text } };
    await client.send(new PutItemCommand({ TableName: items, Item }));
    return { ok: true };
  });
  const publish = idempotent(async () => {
    const Detail = JSON.stringify({ text });
    const entry = { Source: "peer", DetailType: "priced.stored", Detail };
    await bus.send(new PutEventsCommand({ Entries: [entry] }));
    return { ok: true };
  });
  const readAll = async () => {
    for (let n = 0; n < keys * levels; n += 1)
      await client.send(new GetItemCommand({ TableName: parameters, Key: { id: { S: `${n}` } } }));
  };
  const found: Record<string, Bill> = {};
  const measure = async (name: string, work: () => Promise<unknown>) => {
    meter.taken();
    await work();
    found[name] = meter.taken().bill;
  };
  try {
    await measure("claimed write", () => note({ id: "note" }));
    await measure("replay in another process", () => note({ id: "note" }));
    await measure("commit of one item", () => create({ id: "create" }));
    await measure("publish", () => publish({ id: "publish" }));
    await measure("cold configuration of eleven keys", readAll);
    await measure("configuration refresh", readAll);
    return found;
  } finally {
    client.destroy();
    bus.destroy();
    database.destroy();
  }
}
