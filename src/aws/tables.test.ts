import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  ResourceInUseException,
  ResourceNotFoundException,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../context/database.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../embedded/index.ts";
import { endpointOf } from "./adapters.ts";
import { openDatabase } from "./dynamodb.ts";
import { ensureTables } from "./tables.ts";

let stack: EmbeddedStack;
let database: Database;

beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  database = await openDatabase({
    endpoint: stack.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
});
afterAll(async () => {
  database.destroy();
  await stack.close();
});

const active = { TableStatus: "ACTIVE", KeySchema: [{ AttributeName: "pk" }] };

const timeToLiveOf = async (TableName: string) =>
  (await database.send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription?.AttributeName;

const table = (tableName: string, sortKey?: string) => ({
  name: "my-files",
  tableName,
  partitionKey: "pk",
  sortKey,
  indexes: [],
});

test("tables that are missing are created, with and without a sort key, and found again", async () => {
  const tables = [table("one"), table("two", "sk")];
  await ensureTables(database, tables, "create");

  await expect(ensureTables(database, tables, "check")).resolves.toBeUndefined();
});

test("processes that create the same table with its time to live at once all find both", async () => {
  const raced = { ...table("raced"), timeToLive: "expiresAt" };
  await Promise.all([1, 2, 3, 4].map(() => ensureTables(database, [raced], "create")));

  expect(await timeToLiveOf("raced")).toBe("expiresAt");
});

test("a table whose maker died before its time to live was enabled gets it from the next process", async () => {
  await ensureTables(database, [table("orphaned")], "create");
  await ensureTables(database, [{ ...table("orphaned"), timeToLive: "expiresAt" }], "create");

  expect(await timeToLiveOf("orphaned")).toBe("expiresAt");
});

test("a table with its time to live at another attribute is an error", async () => {
  const expiring = (timeToLive: string) => ensureTables(database, [{ ...table("expiring"), timeToLive }], "create");
  await expiring("expires");

  await expect(expiring("expiresAt")).rejects.toThrow(/table expiring has its time to live at expires, not at expiresAt/);
});

test("a time to live that cannot be enabled is an error that says why", async () => {
  const send = async (command: unknown) => {
    if (command instanceof UpdateTimeToLiveCommand) throw new Error("not supported");
    return command instanceof DescribeTableCommand ? { Table: active } : {};
  };

  await expect(ensureTables({ send } as never, [{ ...table("t"), timeToLive: "expiresAt" }], "create")).rejects.toThrow(
    "not supported",
  );
});

test("a table that another process is just making is waited for", async () => {
  const states = ["CREATING", "ACTIVE"];
  const sent: unknown[] = [];
  const send = async (command: unknown) => {
    sent.push(command);
    return { Table: { ...active, TableStatus: states.shift() ?? "ACTIVE" } };
  };
  await ensureTables({ send } as never, [table("t")], "create");

  expect(states).toEqual([]);
  expect(sent.every((command) => command instanceof DescribeTableCommand)).toBe(true);
});

test("on AWS a missing table is an error that names it and the variable to set", async () => {
  await expect(ensureTables(database, [table("absent")], "check")).rejects.toThrow(
    /table absent does not exist.*KEELSON_TABLE_MY_FILES/,
  );
});

test("a table with other keys is an error", async () => {
  await ensureTables(database, [table("keyed")], "create");

  await expect(ensureTables(database, [table("keyed", "sk")], "create")).rejects.toThrow(
    /table keyed has the keys pk, not pk, sk/,
  );
});

test("a table that is gone again once it was made is an error", async () => {
  const states = ["CREATING", "ACTIVE"];
  const send = async () => {
    const TableStatus = states.shift();
    if (TableStatus === undefined) throw new ResourceNotFoundException({ message: "", $metadata: {} });
    return { Table: { ...active, TableStatus } };
  };

  await expect(ensureTables({ send } as never, [table("t")], "create")).rejects.toThrow(/table t has the keys , not pk/);
});

test("a table that another process creates in between is not an error unless it has other keys, anything else is", async () => {
  const losing = (error: Error) => {
    let described = 0;
    const send = async (command: CreateTableCommand | DescribeTableCommand) => {
      if (command instanceof CreateTableCommand) throw error;
      if (described++ === 0) throw new ResourceNotFoundException({ message: "", $metadata: {} });
      return { Table: active };
    };
    return { send } as never;
  };

  await expect(
    ensureTables(losing(new ResourceInUseException({ message: "", $metadata: {} })), [table("t")], "create"),
  ).resolves.toBeUndefined();
  await expect(
    ensureTables(losing(new ResourceInUseException({ message: "", $metadata: {} })), [table("t", "sk")], "create"),
  ).rejects.toThrow(/table t has the keys pk, not pk, sk/);
  await expect(ensureTables(losing(new Error("denied")), [table("t")], "create")).rejects.toThrow("denied");
  await expect(ensureTables({ send: () => Promise.reject(new Error("down")) } as never, [table("t")], "create")).rejects.toThrow(
    "down",
  );
  await expect(
    ensureTables({ send: async () => ({ Table: { TableStatus: "ACTIVE" } }) } as never, [table("t")], "create"),
  ).rejects.toThrow(/has the keys , not pk/);
});

test("the endpoint is the one of DynamoDB, else the one of all services, else AWS's own", () => {
  expect(endpointOf({ AWS_ENDPOINT_URL_DYNAMODB: "a", AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe("a");
  expect(endpointOf({ AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe("b");
  expect(endpointOf({}, "DYNAMODB")).toBeUndefined();
});
