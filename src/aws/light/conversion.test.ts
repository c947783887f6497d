import {
  DynamoDBDocument,
  DynamoDBDocumentClient,
  NumberValue,
  PutCommand,
} from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { requestDatabases } from "../../app/ctx/request-database.ts";
import type { Database } from "../../base/types/database.ts";
import { createWall, type Wall } from "../../parts/wall/wall.ts";
import { openDatabase } from "../clients/dynamodb.ts";
import { accessDatabase } from "./light-database.ts";

const account = {
  region: "us-east-1",
  credentials: { accessKeyId: "a", secretAccessKey: "s" },
};
/** Variables with which a function starts without the SDK. */
const variables = {
  HOME: "/none",
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "a",
  AWS_SECRET_ACCESS_KEY: "s",
};

/** Answers each call of the client with `{ n: 5 }`, and returns the items that it sends. */
function itemsOf(client: Database): unknown[] {
  const items: unknown[] = [];
  const body = new TextEncoder().encode(JSON.stringify({ Attributes: { n: { N: "5" } } }));
  client.config.requestHandler.handle = async ({ body: sent }) => {
    items.push(JSON.parse(new TextDecoder().decode(sent)).Item);
    // Safe: the SDK reads these members of a response.
    return { response: { statusCode: 200, headers: {}, body } as never };
  };
  return items;
}

const item = { id: "acme/1", note: "", address: { street: "s", line2: undefined } };
const put = () => new PutCommand({ TableName: "t", Item: item, ReturnValues: "ALL_OLD" });

const wall = createWall([{ name: "t", tableName: "t", partitionKey: "id", indexes: [] }]);

test.each<[string, () => Promise<Database>, wall?: Wall]>([
  ["a client", () => openDatabase(account)],
  ["a client with a wall", () => openDatabase(account), wall],
  ["a client made late", async () => (await accessDatabase(variables, account, true)).database],
  [
    "a client made late with a wall",
    async () => (await accessDatabase(variables, account, true)).database,
    wall,
  ],
])("a client derived from `ctx.db` has its own conversion of values: %s", async (_, open, wall) => {
  const client = await open();
  const items = itemsOf(client);
  const dbOf = requestDatabases(client, wall);
  const request = { signal: undefined, tenantId: "acme", log: { error: vi.fn() } };
  const newDb = () => dbOf({ ...request, sessionFor: vi.fn() });
  const db = newDb();
  const options = {
    marshallOptions: { convertEmptyValues: true, removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: true },
  };
  const derived = DynamoDBDocumentClient.from(db as never, options);
  expect((await derived.send(put())).Attributes).toEqual({ n: NumberValue.from("5") });
  expect(items.pop()).toMatchObject({ note: { NULL: true } });
  await expect(DynamoDBDocument.from(db as never).put(put().input)).rejects.toThrow(
    "removeUndefinedValues",
  );
  for (const sender of [client, db, newDb()]) {
    expect((await sender.send(put())).Attributes).toEqual({ n: 5 });
    expect(items.pop()).toEqual({
      id: { S: "acme/1" },
      note: { S: "" },
      address: { M: { street: { S: "s" } } },
    });
  }
});
