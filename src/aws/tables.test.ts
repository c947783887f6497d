import {
  CreateTableCommand,
  type DescribeTableCommand,
  ResourceInUseException,
  ResourceNotFoundException,
} from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../context/pipeline-context.ts";
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

const table = (tableName: string, sortKey?: string) => ({ name: "my-files", tableName, partitionKey: "pk", sortKey });

test("tables that are missing are created, with and without a sort key, and found again", async () => {
  const tables = [table("one"), table("two", "sk")];
  await ensureTables(database, tables, "create");

  await expect(ensureTables(database, tables, "check")).resolves.toBeUndefined();
});

test("two processes that create the same table at once both find it", async () => {
  await expect(Promise.all([1, 2, 3].map(() => ensureTables(database, [table("raced")], "create")))).resolves.toBeDefined();
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

test("a table that another process creates in between is not an error, anything else is", async () => {
  const losing = (error: Error) => {
    let described = 0;
    const send = async (command: CreateTableCommand | DescribeTableCommand) => {
      if (command instanceof CreateTableCommand) throw error;
      if (described++ === 0) throw new ResourceNotFoundException({ message: "", $metadata: {} });
      return { Table: { TableStatus: "ACTIVE" } };
    };
    return { send } as never;
  };

  await expect(
    ensureTables(losing(new ResourceInUseException({ message: "", $metadata: {} })), [table("t")], "create"),
  ).resolves.toBeUndefined();
  await expect(ensureTables(losing(new Error("denied")), [table("t")], "create")).rejects.toThrow("denied");
  await expect(ensureTables({ send: () => Promise.reject(new Error("down")) } as never, [table("t")], "create")).rejects.toThrow(
    "down",
  );
  await expect(ensureTables({ send: async () => ({}) } as never, [table("t")], "create")).rejects.toThrow(
    /has the keys , not pk/,
  );
});

test("the endpoint is the one of DynamoDB, else the one of all services, else AWS's own", () => {
  expect(endpointOf({ AWS_ENDPOINT_URL_DYNAMODB: "a", AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe("a");
  expect(endpointOf({ AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe("b");
  expect(endpointOf({}, "DYNAMODB")).toBeUndefined();
});
