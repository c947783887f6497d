import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  ResourceInUseException,
  ResourceNotFoundException,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { IndexDeclaration } from "../../app/handlers/table.ts";
import type { Database } from "../../base/types/database.ts";
import { type EmbeddedStack, startEmbeddedStack } from "../../embedded/stack/index.ts";
import { endpointOf } from "../adapters/adapters.ts";
import { openDatabase } from "../clients/dynamodb.ts";
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
  (await database.send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription
    ?.AttributeName;

const table = (tableName: string, sortKey?: string) => ({
  name: "my-files",
  tableName,
  partitionKey: "pk",
  sortKey,
  indexes: [],
});

test("creates missing tables, with and without a sort key, and finds them again", async () => {
  const tables = [table("one"), table("two", "sk")];
  await ensureTables(database, tables, "create");

  await expect(ensureTables(database, tables, "check")).resolves.toBeUndefined();
});

test("processes that create the same table with its time to live at once all find both", async () => {
  const raced = { ...table("raced"), timeToLive: "expiresAt" };
  await Promise.all([1, 2, 3, 4].map(() => ensureTables(database, [raced], "create")));

  expect(await timeToLiveOf("raced")).toBe("expiresAt");
});

test("a table whose creator died before enabling the time to live gets it from the next process", async () => {
  await ensureTables(database, [table("orphaned")], "create");
  await ensureTables(database, [{ ...table("orphaned"), timeToLive: "expiresAt" }], "create");

  expect(await timeToLiveOf("orphaned")).toBe("expiresAt");
});

test("accepts a time to live that another process enables in between", async () => {
  let asked = 0;
  const send = async (command: object) => {
    if (command instanceof UpdateTimeToLiveCommand)
      throw new Error("TimeToLive is already enabled");
    if (!(command instanceof DescribeTimeToLiveCommand)) return { Table: active };
    return {
      TimeToLiveDescription:
        ++asked === 1 ? {} : { TimeToLiveStatus: "ENABLED", AttributeName: "expiresAt" },
    };
  };
  const late = { ...database, config: database.config, send } as never; // safe: all that creating tables calls
  await ensureTables(late, [{ ...table("late"), timeToLive: "expiresAt" }], "create");

  expect(asked).toBe(2);
});

test("rejects a table with its time to live on another attribute", async () => {
  const expiring = (timeToLive: string) =>
    ensureTables(database, [{ ...table("expiring"), timeToLive }], "create");
  await expiring("expires");

  await expect(expiring("expiresAt")).rejects.toThrow(
    /table expiring has its time to live at expires, not at expiresAt/,
  );
});

test("says why a time to live cannot be enabled", async () => {
  const send = async (command: unknown) => {
    if (command instanceof UpdateTimeToLiveCommand) throw new Error("not supported");
    return command instanceof DescribeTableCommand ? { Table: active } : {};
  };

  await expect(
    ensureTables({ send } as never, [{ ...table("t"), timeToLive: "expiresAt" }], "create"),
  ).rejects.toThrow("not supported");
});

test("waits for a table that another process is creating", async () => {
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

test("rejects a table with other keys", async () => {
  await ensureTables(database, [table("keyed")], "create");

  await expect(ensureTables(database, [table("keyed", "sk")], "create")).rejects.toThrow(
    /table keyed has the keys pk, not pk, sk/,
  );
});

test("fails if a table disappears right after its creation", async () => {
  const states = ["CREATING", "ACTIVE"];
  const send = async () => {
    const TableStatus = states.shift();
    if (TableStatus === undefined)
      throw new ResourceNotFoundException({ message: "", $metadata: {} });
    return { Table: { ...active, TableStatus } };
  };

  await expect(ensureTables({ send } as never, [table("t")], "create")).rejects.toThrow(
    /table t has the keys , not pk/,
  );
});

test("accepts a table that another process creates in between unless it has other keys, and throws any other error", async () => {
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
    ensureTables(
      losing(new ResourceInUseException({ message: "", $metadata: {} })),
      [table("t")],
      "create",
    ),
  ).resolves.toBeUndefined();
  await expect(
    ensureTables(
      losing(new ResourceInUseException({ message: "", $metadata: {} })),
      [table("t", "sk")],
      "create",
    ),
  ).rejects.toThrow(/table t has the keys pk, not pk, sk/);
  await expect(ensureTables(losing(new Error("denied")), [table("t")], "create")).rejects.toThrow(
    "denied",
  );
  await expect(
    ensureTables(
      { send: () => Promise.reject(new Error("down")) } as never,
      [table("t")],
      "create",
    ),
  ).rejects.toThrow("down");
  await expect(
    ensureTables(
      { send: async () => ({ Table: { TableStatus: "ACTIVE" } }) } as never,
      [table("t")],
      "create",
    ),
  ).rejects.toThrow(/has the keys , not pk/);
});

const byOwner = {
  name: "byOwner",
  partitionKey: "owner",
  sortKey: "createdAt",
  project: undefined,
};
const bySize = { name: "bySize", partitionKey: "size", sortKey: undefined, project: ["name"] };
const withIndexes = (tableName: string, ...indexes: IndexDeclaration[]) => ({
  ...table(tableName, "sk"),
  indexes,
});
const describedIndexes = async (TableName: string) =>
  (await database.send(new DescribeTableCommand({ TableName }))).Table?.GlobalSecondaryIndexes?.map(
    ({ IndexName, IndexStatus, Projection }) => ({ IndexName, IndexStatus, ...Projection }),
  );

test("creates a table with its indexes", async () => {
  const keys = { name: "keys", partitionKey: "sk", sortKey: "pk", project: [] };
  await ensureTables(database, [withIndexes("indexed", byOwner, bySize, keys)], "create");

  expect(await describedIndexes("indexed")).toEqual([
    { IndexName: "byOwner", IndexStatus: "ACTIVE", ProjectionType: "ALL" },
    {
      IndexName: "bySize",
      IndexStatus: "ACTIVE",
      ProjectionType: "INCLUDE",
      NonKeyAttributes: ["name"],
    },
    { IndexName: "keys", IndexStatus: "ACTIVE", ProjectionType: "KEYS_ONLY" },
  ]);
  for (const mode of ["create", "check"] as const) {
    await expect(
      ensureTables(database, [withIndexes("indexed", byOwner, bySize, keys)], mode),
    ).resolves.toBeUndefined();
  }
});

test("adds missing indexes to an existing table, whichever process is first", async () => {
  await ensureTables(database, [withIndexes("grown")], "create");
  await Promise.all(
    [1, 2, 3].map(() => ensureTables(database, [withIndexes("grown", byOwner, bySize)], "create")),
  );

  expect((await describedIndexes("grown"))?.map(({ IndexName }) => IndexName)).toEqual([
    "byOwner",
    "bySize",
  ]);
});

test("leaves an index alone that is no longer declared", async () => {
  await ensureTables(database, [withIndexes("kept", byOwner)], "create");
  await ensureTables(database, [withIndexes("kept", bySize)], "create");

  expect((await describedIndexes("kept"))?.map(({ IndexName }) => IndexName)).toEqual([
    "byOwner",
    "bySize",
  ]);
});

test("on AWS a missing index is an error that names it, and nothing is created", async () => {
  await ensureTables(database, [withIndexes("unindexed")], "create");

  await expect(
    ensureTables(database, [withIndexes("unindexed", byOwner, bySize)], "check"),
  ).rejects.toThrow(
    "table unindexed: index byOwner: it does not exist; deploy it, index bySize: it does not exist; deploy it",
  );
  expect(await describedIndexes("unindexed")).toBeUndefined();
});

test.each(["create", "check"] as const)(
  "rejects an index with other keys or without a needed attribute (%s)",
  async (mode) => {
    const changed = "an index cannot be changed, so declare it under another name";
    const tableName = `changed-${mode}`;
    await ensureTables(database, [withIndexes(tableName, byOwner, bySize)], "create");
    const wanted = (...indexes: IndexDeclaration[]) =>
      ensureTables(database, [withIndexes(tableName, ...indexes)], mode);

    await expect(wanted({ ...byOwner, sortKey: undefined })).rejects.toThrow(
      `index byOwner: its keys are owner (S), createdAt (S), not owner (S); ${changed}`,
    );
    await expect(wanted({ ...bySize, project: undefined })).rejects.toThrow(
      `index bySize: it projects name, not all attributes; ${changed}`,
    );
    await expect(wanted({ ...bySize, project: ["name", "kind"] })).rejects.toThrow(
      `index bySize: it does not project kind; ${changed}`,
    );
    await expect(
      wanted({ ...byOwner, project: ["name"] }, { ...bySize, project: [] }),
    ).resolves.toBeUndefined();
  },
);

/** A store that describes a table with an index in one state after the other, and answers its creation with what is given. */
function storeOf(states: readonly (string | undefined)[], create: () => unknown = () => ({})) {
  const left = [...states];
  const sent: string[] = [];
  const send = async (command: object) => {
    sent.push(command.constructor.name);
    if (command instanceof UpdateTableCommand) return create();
    const IndexStatus = left.length > 1 ? left.shift() : left[0];
    const index = {
      IndexName: "bySize",
      IndexStatus,
      KeySchema: [{ AttributeName: "size" }],
      Projection: { ProjectionType: "ALL" },
    };
    const AttributeDefinitions = [{ AttributeName: "size", AttributeType: "S" }];
    return {
      Table: {
        TableStatus: IndexStatus === "CREATING" && sent.length > 1 ? "UPDATING" : "ACTIVE",
        KeySchema: [{ AttributeName: "pk" }, { AttributeName: "sk" }],
        AttributeDefinitions,
        ...(IndexStatus === undefined ? {} : { GlobalSecondaryIndexes: [index] }),
      },
    };
  };
  return { sent, store: { send } as never };
}

test("waits in an emulator for an index that is being built, and on AWS is not ready", async () => {
  const building = storeOf(["CREATING", "CREATING", "ACTIVE"]);
  await ensureTables(building.store, [withIndexes("t", bySize)], "create");
  expect(building.sent).not.toContain("UpdateTableCommand");

  await expect(
    ensureTables(storeOf(["CREATING"]).store, [withIndexes("t", bySize)], "check"),
  ).rejects.toThrow("table t: index bySize: it is CREATING, so it cannot be queried yet");
  await expect(
    ensureTables(storeOf(["DELETING"]).store, [withIndexes("t", bySize)], "check"),
  ).rejects.toThrow(/it is DELETING, so it cannot be queried$/);
});

test("creates an index once another one is built, because DynamoDB changes one at a time", async () => {
  const { sent, store } = storeOf(["CREATING", "CREATING", "ACTIVE"], () => {
    throw new Error("the store was asked");
  });

  await expect(
    ensureTables(store, [withIndexes("t", { ...bySize, name: "other" })], "create"),
  ).rejects.toThrow("the store was asked");
  const describe = "DescribeTableCommand";
  expect(sent).toEqual([describe, describe, describe, "UpdateTableCommand", describe]);
});

test("accepts an index that another process creates in between, and throws any other error", async () => {
  const refuse = (name: string) => () => {
    throw new Error(name);
  };
  const lost = storeOf([undefined, "CREATING", "ACTIVE"], refuse("in use"));
  await ensureTables(lost.store, [withIndexes("t", bySize)], "create");
  expect(lost.sent.filter((name) => name === "UpdateTableCommand")).toHaveLength(1);
  const late = storeOf([undefined, "ACTIVE"], refuse("it exists"));
  await expect(
    ensureTables(late.store, [withIndexes("t", bySize)], "create"),
  ).resolves.toBeUndefined();

  await expect(
    ensureTables(
      storeOf([undefined], refuse("not supported")).store,
      [withIndexes("t", bySize)],
      "create",
    ),
  ).rejects.toThrow("not supported");
});

test("fails if an index is not ready within a minute, or its table is deleted in the meantime", async () => {
  const now = vi
    .spyOn(performance, "now")
    .mockReturnValueOnce(0)
    .mockReturnValueOnce(1)
    .mockReturnValue(60_001);
  await expect(
    ensureTables(storeOf(["CREATING"]).store, [withIndexes("t", bySize)], "create"),
  ).rejects.toThrow("it is CREATING");
  now.mockRestore();

  const { store } = storeOf(["CREATING"]);
  let looks = 0;
  const send = async (command: DescribeTableCommand) => {
    if (++looks > 1) throw new ResourceNotFoundException({ message: "", $metadata: {} });
    return (store as Database).send(command);
  };
  await expect(
    ensureTables({ send } as never, [withIndexes("t", bySize)], "create"),
  ).rejects.toThrow("table t: index bySize: it does not exist");
});

test("uses the endpoint of DynamoDB, otherwise the one of all services, otherwise AWS's own", () => {
  expect(endpointOf({ AWS_ENDPOINT_URL_DYNAMODB: "a", AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe(
    "a",
  );
  expect(endpointOf({ AWS_ENDPOINT_URL: "b" }, "DYNAMODB")).toBe("b");
  expect(endpointOf({}, "DYNAMODB")).toBeUndefined();
});
