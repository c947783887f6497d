import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DynamoDBDocument,
  DynamoDBDocumentClient,
  GetCommand,
  paginateQuery,
} from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { requestDatabases } from "../../app/ctx/request-database.ts";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import { createWall } from "../../parts/wall/wall.ts";
import { deferDatabase } from "./deferred-database.ts";

const command = new GetCommand({ TableName: "t", Key: { id: "1" } });

/** A deferred client whose calls are answered with `{ Items: [1] }`, and how it was made. */
function deferred({ later }: { readonly later?: () => Promise<void> } = {}) {
  const client = DynamoDBDocumentClient.from(new DynamoDBClient({ region: "us-east-1" }));
  const sent: unknown[][] = [];
  client.send = ((...given: unknown[]) => {
    sent.push(given);
    const callback = given.find((argument) => typeof argument === "function") as
      | ((...given: unknown[]) => void)
      | undefined;
    if (callback === undefined) return Promise.resolve({ Items: [1] });
    callback(null, { Items: [1] });
    return undefined;
  }) as never; // it takes what `send` takes
  const destroy = vi.spyOn(client.config.requestHandler, "destroy");
  const made: string[] = [];
  const make = (how: string) => {
    made.push(how);
    return client;
  };
  const maker = {
    later: async () => {
      await later?.();
      return () => make("later");
    },
    now: () => make("now"),
  };
  return { ...deferDatabase(maker), client, sent, made, destroy };
}

test("a call waits for the client, and later calls use the same client", async () => {
  const { database, made, sent, isAsked } = deferred();
  expect(isAsked()).toBe(false);
  const calls = [database.send(command), database.send(command, { requestTimeout: 1 })];
  expect(isAsked()).toBe(true);
  expect(made).toEqual([]);

  expect(await Promise.all(calls)).toEqual([{ Items: [1] }, { Items: [1] }]);
  await database.send(command);
  expect(made).toEqual(["later"]);
  expect(sent).toEqual([[command], [command, { requestTimeout: 1 }], [command]]);
});

test("a call with a callback returns nothing and calls back", async () => {
  const { database } = deferred();
  const answer = await new Promise((resolve) => {
    expect(database.send(command, (...given) => resolve(given))).toBeUndefined();
  });
  expect(answer).toEqual([null, { Items: [1] }]);
});

test("fails the call if the client cannot be created, and tries again at the next call", async () => {
  const later = vi
    .fn()
    .mockRejectedValueOnce(new Error("no file"))
    .mockRejectedValueOnce(new Error("no file again"));
  const { database, made } = deferred({ later });

  await expect(database.send(command)).rejects.toThrow("no file");
  expect(await new Promise((resolve) => void database.send(command, {}, resolve))).toMatchObject({
    message: "no file again",
  });
  expect(await database.send(command)).toEqual({ Items: [1] });
  expect(made).toEqual(["later"]);
});

test("accessing anything other than `send` creates a client immediately, and it remains the only one", async () => {
  const { database, client, made, load } = deferred();
  expect(database).toBeInstanceOf(DynamoDBDocumentClient);
  expect(database.config).toBe(client.config);
  expect("middlewareStack" in database).toBe(true);
  await load();
  expect(made).toEqual(["now"]);
});

test("the SDK's paginators and full client accept a request's database before a client exists", async () => {
  const pages = [];
  for await (const page of paginateQuery(
    { client: requestDatabases(deferred().database)({} as never) },
    { TableName: "t" },
  )) {
    pages.push(page);
  }
  expect(pages).toEqual([{ Items: [1] }]);
  expect(DynamoDBDocument.from(requestDatabases(deferred().database)({} as never))).toBeInstanceOf(
    DynamoDBDocument,
  );
});

test("creating databases for requests, adding members and awaiting them creates no client", async () => {
  const { database, made } = deferred();
  const own = requestDatabases(database)({ signal: undefined } as never);
  Object.assign(own, { note: 1 });
  await own;
  expect(made).toEqual([]);
  expect(requestDatabases(database)({} as never)).not.toHaveProperty("note");
});

test("sets properties on the client", () => {
  const { database, client } = deferred();
  Object.assign(database, { note: 1 });
  expect(client).toHaveProperty("note", 1);
});

test("closing ends the connections of the client, if there is one", async () => {
  const { close, destroy, database } = deferred();
  close();
  expect(destroy).not.toHaveBeenCalled();
  await database.send(command);
  close();
  expect(destroy).toHaveBeenCalledTimes(1);
});

test("keeps a client that was created synchronously while the asynchronous creation was in progress", async () => {
  const { database, client, made, load } = deferred();
  const loading = load();
  expect(database.config).toBe(client.config);
  await loading;
  expect(made).toEqual(["now"]);
});

test("a deferred client has the wall from its first command", async () => {
  const table = { name: "files", tableName: "t", partitionKey: "pk", indexes: [] };
  const wall = createWall([table]);
  const get = (pk: string) => new GetCommand({ TableName: "t", Key: { pk } });
  const foreign = get("globex/files");
  for (const isMade of [false, true]) {
    const body = new TextEncoder().encode("{}");
    const handle = vi.fn(async () => ({ response: { statusCode: 200, headers: {}, body } }));
    const client = DynamoDBDocumentClient.from(
      new DynamoDBClient({
        region: "us-east-1",
        credentials: { accessKeyId: "a", secretAccessKey: "s" },
        requestHandler: { handle } as never, // all that the SDK asks of one
      }),
    );
    const { database, load } = deferDatabase({
      later: async () => () => client,
      now: () => client,
    });
    if (isMade) await load();
    const request = { signal: undefined, tenantId: "acme", log: { error: vi.fn() } };
    const db = requestDatabases(database, wall)({ ...request, sessionFor: vi.fn() });
    await expect(db.send(foreign)).rejects.toBeInstanceOf(AccessDeniedError);
    await expect(new Promise((_, reject) => db.send(foreign, reject))).rejects.toBeInstanceOf(
      AccessDeniedError,
    );
    await expect(DynamoDBDocument.from(db as never).get(foreign.input)).rejects.toBeInstanceOf(
      AccessDeniedError,
    );
    expect(handle).not.toHaveBeenCalled();
    await db.send(get("acme/files"));
    expect(handle).toHaveBeenCalledOnce();
  }
});
