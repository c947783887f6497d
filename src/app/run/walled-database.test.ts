import { DynamoDBClient, GetItemCommand, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  DynamoDBDocument,
  DynamoDBDocumentClient,
  ExecuteStatementCommand,
  GetCommand,
  PutCommand,
  paginateQuery,
  QueryCommand,
  ScanCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import type { Database } from "../../base/types/database.ts";
import { createWall } from "../../parts/wall/wall.ts";
import { requestDatabases } from "../ctx/request-database.ts";

const own = new GetCommand({ TableName: "t-files", Key: { pk: "acme/files", sk: "1" } });
const foreign = () =>
  new GetCommand({ TableName: "t-files", Key: { pk: "globex/files", sk: "1" } });

/** A client of the SDK whose requests go nowhere. */
function recordedClient() {
  const sent: { readonly target: string; readonly body: Record<string, unknown> }[] = [];
  const requestHandler = {
    handle: async ({ headers, body }: { headers: Record<string, string>; body: string }) => {
      sent.push({ target: headers["x-amz-target"] ?? "", body: JSON.parse(body) });
      return { response: { statusCode: 200, headers: {}, body: new TextEncoder().encode("{}") } };
    },
  };
  const client = DynamoDBDocumentClient.from(
    new DynamoDBClient({
      region: "us-east-1",
      credentials: { accessKeyId: "a", secretAccessKey: "s" },
      requestHandler: requestHandler as never, // all that the SDK asks of one
    }),
    { marshallOptions: { removeUndefinedValues: true } },
  );
  return { client, sent };
}

const wall = createWall([
  {
    name: "files",
    tableName: "t-files",
    partitionKey: "pk",
    indexes: [{ name: "byOwner", partitionKey: "owner" }],
  },
  {
    name: "notes",
    tableName: "arn:aws:dynamodb:us-east-1:1:table/t-notes",
    partitionKey: "id",
    indexes: [],
  },
  { name: "unnamed", tableName: "no name of a table", partitionKey: "id", indexes: [] },
  // The same table under another name, with an index of its own.
  {
    name: "papers",
    tableName: "t-files",
    partitionKey: "pk",
    indexes: [{ name: "byState", partitionKey: "state" }],
  },
]);

/** The database of a request of `acme`, around a client. */
function walled(
  client: Database,
  { signal, tenantId = "acme" }: { signal?: AbortSignal; tenantId?: string } = {},
) {
  const log = { error: vi.fn() };
  return {
    log,
    db: requestDatabases(client, wall)({ signal, tenantId, log, sessionFor: vi.fn() }),
  };
}

function setup(options: { signal?: AbortSignal; tenantId?: string } = {}) {
  const { client, sent } = recordedClient();
  return { client, sent, ...walled(client, options) };
}

test("sends a command on the caller's own rows unchanged", async () => {
  const { db, sent, log } = setup();
  await db.send(own);
  expect(sent).toEqual([
    {
      target: "DynamoDB_20120810.GetItem",
      body: { TableName: "t-files", Key: { pk: { S: "acme/files" }, sk: { S: "1" } } },
    },
  ]);
  expect(log.error).not.toHaveBeenCalled();
});

test("rejects a command on another tenant's rows with AccessDeniedError, logs it and never sends it", async () => {
  const { db, sent, log } = setup();
  const error = await db.send(foreign()).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(AccessDeniedError);
  expect(error).toMatchObject({
    message: "Access denied: tenant.wall",
    status: 403,
    cause: { message: "GetItem on the table files: pk does not start with the tenant" },
  });
  expect(log.error.mock.calls).toEqual([
    [
      "tenant.wall",
      { operation: "GetItem", table: "files", reason: "pk does not start with the tenant" },
    ],
  ]);
  expect(sent).toEqual([]);
});

test.each<[string, (db: Database) => unknown]>([
  [
    "send with a signal of its own",
    (db) => db.send(foreign(), { abortSignal: new AbortController().signal }),
  ],
  [
    "a callback",
    (db) =>
      new Promise((resolve, reject) =>
        db.send(foreign(), (error) => (error ? reject(error) : resolve(1))),
      ),
  ],
  ["a client made from it", (db) => DynamoDBDocumentClient.from(db as never).send(foreign())],
  [
    "a client made from one made from it",
    (db) =>
      DynamoDBDocument.from(DynamoDBDocumentClient.from(db as never) as never).get(foreign().input),
  ],
  ["the full client", (db) => DynamoDBDocument.from(db as never).query({ TableName: "t-files" })],
  [
    "the `send` of its class",
    (db) =>
      (DynamoDBDocumentClient.prototype.send as (command: GetCommand) => unknown).call(
        db,
        foreign(),
      ),
  ],
  [
    "a command that is resolved by hand",
    (db) =>
      foreign().resolveMiddleware(db.middlewareStack as never, db.config, {})(foreign() as never),
  ],
  [
    "its middlewares without a command",
    (db) => {
      // It stands before one that only commands bring.
      db.middlewareStack.remove("httpAuthSchemeMiddleware");
      return db.middlewareStack.resolve(vi.fn(), { commandName: "GetItemCommand" } as never)({
        input: foreign().input,
      } as never);
    },
  ],
  [
    "a copy of its middlewares",
    (db) =>
      foreign().resolveMiddleware(
        db.middlewareStack.clone() as never,
        db.config,
        {},
      )(foreign() as never),
  ],
  [
    "its middlewares behind others",
    (db) => {
      const other = new DynamoDBClient({ region: "us-east-1" }).middlewareStack.clone();
      for (const name of other.identify()) other.remove(name.split(" ")[0] as string);
      return foreign().resolveMiddleware(
        other.concat(db.middlewareStack as never) as never,
        db.config,
        {},
      )(foreign() as never);
    },
  ],
  [
    "a command of the plain client",
    (db) =>
      db.send(
        new GetItemCommand({ TableName: "t-files", Key: { pk: { S: "globex/files" } } }) as never,
      ),
  ],
  [
    "a paginator",
    async (db) => {
      const input = {
        TableName: "t-files",
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": "globex/files" },
      };
      for await (const _ of paginateQuery({ client: db }, input));
    },
  ],
  [
    "a pagination token",
    (db) =>
      db.send(
        new QueryCommand({
          TableName: "t-files",
          KeyConditionExpression: "pk = :pk",
          ExpressionAttributeValues: { ":pk": "acme/files" },
          ExclusiveStartKey: { pk: "globex/files", sk: "1" },
        }),
      ),
  ],
  [
    "a batch",
    (db) =>
      db.send(
        new BatchGetCommand({
          RequestItems: { "t-files": { Keys: [own.input.Key ?? {}, { pk: "globex/" }] } },
        }),
      ),
  ],
  [
    "an index of the same table",
    (db) =>
      db.send(
        new PutCommand({ TableName: "t-files", Item: { pk: "acme/1", state: "globex/new" } }),
      ),
  ],
  [
    "a table whose physical name is an ARN",
    (db) => db.send(new GetCommand({ TableName: "t-notes", Key: { id: "globex/1" } })),
  ],
  ["a scan", (db) => db.send(new ScanCommand({ TableName: "t-files" }))],
  [
    "PartiQL",
    (db) => db.send(new ExecuteStatementCommand({ Statement: 'SELECT * FROM "t-files"' })),
  ],
  ["a control command", (db) => db.send(new ListTablesCommand({}))],
  [
    "a middleware of the command's own that names another row",
    (db) => {
      const command = new GetCommand({ ...own.input } as typeof own.input);
      command.middlewareStack.add(
        (next) => (given) => next({ ...given, input: foreign().input as never }),
        {
          step: "initialize",
        },
      );
      return db.send(command);
    },
  ],
  [
    "a command class under another name, as a minifier gives it",
    (db) => db.send(new (class a extends GetCommand {})(foreign().input)),
  ],
])("cannot be bypassed: %s", async (_, send) => {
  const signal = new AbortController().signal;
  for (const options of [{}, { signal }]) {
    const { db, sent, log } = setup(options);
    await expect(send(db)).rejects.toBeInstanceOf(AccessDeniedError);
    expect(log.error).toHaveBeenCalledExactlyOnceWith("tenant.wall", expect.anything());
    expect(sent).toEqual([]);
  }
});

test("changing an object after passing it reaches no other tenant's row", async () => {
  const { db, sent } = setup();
  const input = { TableName: "t-files", Key: { pk: "acme/files" } };
  const plain = { TableName: "t-files", Key: { pk: { S: "acme/files" } } };
  const sending = [db.send(new GetCommand(input)), db.send(new GetItemCommand(plain) as never)];
  const change = () => {
    input.Key.pk = "globex/files";
    plain.Key.pk.S = "globex/files";
  };
  change();
  await Promise.allSettled(sending);
  expect(JSON.stringify(sent)).not.toContain("globex");
});

test("a run without a tenant reaches no rows of tables with tenants, but those of other tables", async () => {
  const { db, sent } = setup({ tenantId: "" });
  await expect(db.send(own)).rejects.toMatchObject({
    cause: { message: "GetItem on the table files: the run has no tenant" },
  });
  await db.send(new GetCommand({ TableName: "t-orders", Key: { pk: "1" } }));
  await db.send(new ScanCommand({ TableName: "t-orders" }));
  expect(sent.map(({ target }) => target)).toEqual([
    "DynamoDB_20120810.GetItem",
    "DynamoDB_20120810.Scan",
  ]);
});

test("concurrent requests each have their own tenant's wall, and client middlewares apply to all", async () => {
  const { client, sent } = recordedClient();
  const [acme, globex] = [walled(client).db, walled(client, { tenantId: "globex" }).db];
  const seen: string[] = [];
  acme.middlewareStack.add(
    (next, { commandName = "" }) =>
      (given) => {
        seen.push(commandName);
        return next(given);
      },
    { step: "initialize", name: "seen", tags: ["SEEN"] },
  );
  const answers = await Promise.allSettled([
    acme.send(own),
    globex.send(own),
    acme.send(foreign()),
    globex.send(foreign()),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
  ]);
  expect(sent).toHaveLength(2);
  expect(seen).toHaveLength(4);
});

test("a request's database shows the middlewares of its client", () => {
  const { db, client } = setup();
  const middleware = ((next: unknown) => next) as never; // it changes nothing
  const { middlewareStack } = db;
  expect(db.middlewareStack).toBe(middlewareStack);
  expect(middlewareStack.identify()).toEqual(client.middlewareStack.identify());
  middlewareStack.add(middleware, { name: "one", step: "build" });
  middlewareStack.addRelativeTo(middleware, {
    name: "two",
    relation: "after",
    toMiddleware: "one",
  });
  middlewareStack.use({
    applyToStack: (stack) => stack.add(middleware, { name: "three", tags: ["T"] }),
  });
  expect(client.middlewareStack.identify().join()).toMatch(/(?=.*one)(?=.*two)(?=.*three)/);
  expect(middlewareStack.identifyOnResolve(false)).toBe(false);
  expect([
    middlewareStack.remove("two"),
    middlewareStack.remove("one"),
    middlewareStack.removeByTag("T"),
  ]).toEqual([true, true, true]);
  expect(() => Object.assign(db, { middlewareStack: client.middlewareStack })).toThrow(TypeError);
});

test("a commit's items are checked and copied, so that later changes have no effect", () => {
  const log = { error: vi.fn() };
  const caller = { tenantId: "acme", log };
  const item = {
    Put: { TableName: "t-files", Item: { pk: "acme/1", owner: "acme/ann", tags: new Set(["a"]) } },
    Delete: undefined,
  };
  const checked = wall.checkItems(
    [item, { ConditionCheck: { TableName: "t-orders", Key: { id: "1" } } }],
    caller,
  );
  expect(checked).toEqual([item, { ConditionCheck: { TableName: "t-orders", Key: { id: "1" } } }]);
  item.Put.Item.owner = "globex/gil";
  item.Put.Item.pk = "globex/1";
  expect(checked[0]).toMatchObject({ Put: { Item: { pk: "acme/1", owner: "acme/ann" } } });
  expect(() => wall.checkItems([item], caller)).toThrow(AccessDeniedError);
  expect(() => wall.checkItems([item], { log, tenantId: undefined })).toThrow(AccessDeniedError);
  expect(() => wall.checkItems([7], caller)).toThrow(AccessDeniedError);
  expect(log.error.mock.calls.map(([, { operation, table }]) => [operation, table])).toEqual([
    ["ctx.commit", "files"],
    ["ctx.commit", "files"],
    ["ctx.commit", undefined],
  ]);
  expect(wall.checkItems("none" as never, caller)).toBe("none");
});

test("an update that sets an index attribute is checked in the form it is sent", async () => {
  const { db, sent } = setup();
  const update = (owner: unknown) =>
    new UpdateCommand({
      TableName: "t-files",
      Key: { pk: "acme/1" },
      UpdateExpression: "SET #o = :o",
      ExpressionAttributeNames: { "#o": "owner" },
      ExpressionAttributeValues: { ":o": owner },
    });
  await db.send(update("acme/ann"));
  await expect(db.send(update("globex/ann"))).rejects.toBeInstanceOf(AccessDeniedError);
  await expect(db.send(update({ S: "acme/ann" }))).rejects.toBeInstanceOf(AccessDeniedError);
  expect(sent).toHaveLength(1);
});
