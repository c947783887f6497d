import { expect, test, vi } from "vitest";
import { AccessDeniedError } from "../../base/errors/errors.ts";
import type { Metrics } from "../../base/metrics/metrics.ts";
import type { Isolation } from "./isolation.ts";
import { createWall } from "./wall.ts";
import type { Stack } from "./walled-stack.ts";

const arn = "arn:aws:dynamodb:eu-central-1:1:table/t-notes";
const tables = [
  {
    name: "files",
    tableName: "t-files",
    partitionKey: "pk",
    indexes: [{ name: "byOwner", partitionKey: "owner" }],
  },
  { name: "notes", tableName: arn, partitionKey: "id", indexes: [] },
  // Declared twice: each declaration has an index of its own.
  {
    name: "papers",
    tableName: "t-files",
    partitionKey: "pk",
    indexes: [{ name: "byState", partitionKey: "state" }],
  },
  { name: "unnamed", tableName: "no name", partitionKey: "id", indexes: [] },
];

type Handler = (given: unknown) => unknown;

/** Sends a command through the middlewares that a walled stack adds. */
function send(wall: (stack: Stack) => Stack, commandName: string, input: unknown): unknown {
  const added: ((next: Handler, context: unknown) => Handler)[] = [];
  const stack = {
    clone: () => stack,
    addRelativeTo: (middleware: (next: Handler, context: unknown) => Handler) =>
      added.push(middleware),
    resolve: (last: Handler, context: unknown) =>
      added.reduceRight((next, middleware) => middleware(next, context), last),
  };
  // As far as a walled stack uses it.
  const walled = wall(stack as unknown as Stack);
  const handler = walled.resolve((() => "sent") as never, { commandName } as never);
  return (handler as unknown as Handler)({ input, request: "r" });
}

function setup(isolation?: Isolation) {
  const log = { error: vi.fn() };
  const record = vi.fn();
  const wall = createWall(tables, isolation, { record } as unknown as Metrics);
  const caller = (tenantId: string | undefined) => ({ tenantId, log });
  const sendAs = (tenantId: string | undefined, name: string, input: unknown) =>
    send((stack) => wall.stackFor(stack, caller(tenantId)), name, input);
  return { log, record, wall, caller, sendAs };
}

const get = (TableName: string, Key: object) => ({ TableName, Key });
const failureOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

test("sends a command for the tenant's own rows, whose ID is encoded in the keys", () => {
  const { sendAs, log, record } = setup();
  expect(sendAs("acme", "GetItemCommand", get("t-files", { pk: "acme/1" }))).toBe("sent");
  expect(sendAs("a b", "GetItemCommand", get("t-files", { pk: "a=20b/1" }))).toBe("sent");
  expect(sendAs("acme", "GetItemCommand", get("other", { pk: "globex/1" }))).toBe("sent");
  expect(log.error).not.toHaveBeenCalled();
  expect(record).not.toHaveBeenCalled();
});

test("refuses, logs and counts a command for another tenant's rows", async () => {
  const { sendAs, log, record } = setup();
  const error = await Promise.resolve(
    sendAs("acme", "GetItemCommand", get("t-files", { pk: "globex/1" })),
  ).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(AccessDeniedError);
  const reason = "pk does not start with the tenant";
  expect(error).toMatchObject({
    message: "Access denied: tenant.wall",
    cause: { message: `GetItem on the table files: ${reason}` },
  });
  expect(log.error.mock.calls).toEqual([
    ["tenant.wall", { operation: "GetItem", table: "files", reason }],
  ]);
  expect(record.mock.calls).toEqual([["keelson.wall.hits", 1]]);
});

test("refuses a command the same way where nothing is counted", async () => {
  const log = { error: vi.fn() };
  const wall = createWall(tables);
  const foreign = get("t-files", { pk: "globex/1" });
  await expect(
    send((stack) => wall.stackFor(stack, { tenantId: "acme", log }), "GetItemCommand", foreign),
  ).rejects.toBeInstanceOf(AccessDeniedError);
  expect(log.error).toHaveBeenCalledOnce();
});

test("names no table if the command has none", async () => {
  const { sendAs, log } = setup();
  await expect(sendAs("acme", "ExecuteStatementCommand", {})).rejects.toMatchObject({
    cause: { message: "ExecuteStatement: only commands on items can be checked" },
  });
  expect(log.error).toHaveBeenCalledWith("tenant.wall", {
    operation: "ExecuteStatement",
    reason: "only commands on items can be checked",
  });
});

test.each([undefined, ""])(
  "a run without a tenant (%j) reaches no walled table",
  async (tenant) => {
    const { sendAs } = setup();
    await expect(
      sendAs(tenant, "GetItemCommand", get("t-files", { pk: "/1" })),
    ).rejects.toMatchObject({
      cause: { message: "GetItem on the table files: the run has no tenant" },
    });
    expect(sendAs(tenant, "GetItemCommand", get("other", { pk: "1" }))).toBe("sent");
  },
);

test("a table declared by its ARN is walled by its name, one without a name by what it is called", async () => {
  const { sendAs } = setup();
  for (const name of ["t-notes", arn, "no name"]) {
    expect(sendAs("acme", "GetItemCommand", get(name, { id: "acme/1" }))).toBe("sent");
    await expect(sendAs("acme", "GetItemCommand", get(name, { id: "1" }))).rejects.toThrow(
      "tenant.wall",
    );
  }
});

test("a table declared twice has the indexes of both, and the first name", async () => {
  const { sendAs } = setup();
  const put = (item: object) =>
    Promise.resolve(sendAs("acme", "PutItemCommand", { TableName: "t-files", Item: item }));
  await expect(put({ pk: "acme/1", owner: "acme/a", state: "acme/s" })).resolves.toBe("sent");
  for (const attribute of ["owner", "state"]) {
    await expect(put({ pk: "acme/1", [attribute]: "x" })).rejects.toMatchObject({
      cause: {
        message: `PutItem on the table files: ${attribute} does not start with the tenant`,
      },
    });
  }
  for (const [index, attribute] of Object.entries({ byOwner: "owner", byState: "state" })) {
    const query = {
      TableName: "t-files",
      IndexName: index,
      KeyConditionExpression: `${attribute} = :v`,
      ExpressionAttributeValues: { ":v": "acme/x" },
    };
    expect(sendAs("acme", "QueryCommand", query)).toBe("sent");
  }
});

test("commits a copy of the tenant's items, as deep as the check reads", () => {
  const { wall, caller } = setup();
  const Item = { pk: "acme/1", size: { N: "1" } };
  const items = [
    { Put: { TableName: "t-files", Item } },
    { Put: { TableName: "other", Item: {} } },
  ];
  const copies = wall.checkItems(items, caller("acme"));
  expect(copies).toEqual(items);
  expect(copies[0]?.Put.Item).toSatisfy((copy: typeof Item) => copy.size === Item.size);
  Item.pk = "globex/1";
  items.pop();
  expect(copies).toEqual([
    { Put: { TableName: "t-files", Item: { pk: "acme/1", size: { N: "1" } } } },
    { Put: { TableName: "other", Item: {} } },
  ]);
});

test("refuses a commit of another tenant's items, and of items that it cannot read", () => {
  const { wall, caller, log } = setup();
  const foreign = [{ Put: { TableName: "t-files", Item: { pk: "globex/1" } } }];
  const reason = "pk does not start with the tenant";
  expect(failureOf(() => wall.checkItems(foreign, caller("acme")))).toMatchObject({
    status: 403,
    cause: { message: `ctx.commit on the table files: ${reason}` },
  });
  expect(log.error).toHaveBeenCalledWith("tenant.wall", {
    operation: "ctx.commit",
    table: "files",
    reason,
  });
  // A list stays one where it has an action's name, too.
  const named = Object.assign([], { Put: { TableName: "t-files", Item: { pk: "acme/1" } } });
  for (const unreadable of ["text", null, ["list"], 1, named]) {
    expect(failureOf(() => wall.checkItems([unreadable], caller("acme")))).toMatchObject({
      cause: { message: "ctx.commit: the command cannot be read" },
    });
  }
});

test("leaves malformed items to the commit, and still refuses another tenant's", () => {
  const { wall, caller, log } = setup();
  const mistake = new TypeError("item 0 is not one of Put, Update, Delete and ConditionCheck");
  const assertActions = vi.fn(() => {
    throw mistake;
  });
  const from = { ...caller("acme"), assertActions };
  expect(() => wall.checkItems([undefined], from)).toThrow(mistake);
  expect(log.error).not.toHaveBeenCalled();
  const foreign = [{ Put: { TableName: "t-files", Item: { pk: "globex/1" } } }];
  assertActions.mockImplementation(() => undefined as never);
  expect(failureOf(() => wall.checkItems(foreign, from))).toMatchObject({ status: 403 });
  expect(log.error).toHaveBeenCalledOnce();
});

test.each<[string, object, string]>([
  ["a key", { Delete: { Key: Promise.resolve({ pk: "acme/1" }) } }, "its Key"],
  ["an item", { Put: { Item: Promise.resolve({ pk: "acme/1" }) } }, "its Key or Item"],
  ["an attribute", { Put: { Item: { pk: Promise.resolve("acme/1") } } }, "pk"],
])("refuses a commit with %s that nobody awaited", (_, item, what) => {
  const { wall, caller } = setup();
  const [[action, input] = []] = Object.entries(item);
  const given = { [String(action)]: { TableName: "t-files", ...input } };
  expect(failureOf(() => wall.checkItems([given], caller("acme")))).toMatchObject({
    cause: {
      message: `ctx.commit on the table files: ${what} is a promise, which is not awaited`,
    },
  });
});

test("leaves anything but a list to the commit", () => {
  const { wall, caller } = setup();
  const given: unknown = { length: 1 };
  expect(wall.checkItems(given, caller("acme"))).toBe(given);
});

test("has no account's wall without an isolation", () => {
  expect(setup().wall.account).toBeUndefined();
});

test("with an isolation, each command is signed for the tenant or for all of them", async () => {
  const sign = vi.fn();
  const open = vi.fn<Isolation["open"]>(async () => sign);
  const { wall, sendAs } = setup({ open });
  const command = get("t-files", { pk: "a=20b/1" });

  expect(await sendAs("a b", "GetItemCommand", command)).toBe("sent");
  const account = wall.account as NonNullable<typeof wall.account>;
  const all = get("t-files", { pk: "anyone's" });
  expect(await send(account.stackAcross, "GetItemCommand", all)).toBe("sent");
  expect(await send((stack) => account.stackOf(stack, "a b"), "GetItemCommand", all)).toBe("sent");
  const tenant = { key: "tenant", value: "a=20b" };
  expect(open.mock.calls).toEqual([[tenant], [{ key: "across", value: "true" }], [tenant]]);
  expect(sign.mock.calls).toEqual([["r"], ["r"], ["r"]]);

  expect(sendAs("a b", "GetItemCommand", get("other", { pk: "1" }))).toBe("sent");
  expect(sendAs(undefined, "GetItemCommand", get("other", { pk: "1" }))).toBe("sent");
  expect(open).toHaveBeenCalledTimes(3);
});
