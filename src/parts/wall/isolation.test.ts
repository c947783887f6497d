import { expect, test, vi } from "vitest";
import { acrossTag, type Isolation, sessionOpener } from "./isolation.ts";

const opened = vi.fn();
const isolation: Isolation = { open: vi.fn<Isolation["open"]>(async () => opened) };
const tag = { key: "tenant", value: "acme" } as const;
const open = sessionOpener(isolation, (table) => table === "files", tag);
const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/files";
const [walled, other] = [{ TableName: "files" }, { TableName: "counts" }];

test.each<[string, object]>([
  ["GetItem", walled],
  ["Query", { TableName: arn, IndexName: "byOwner" }],
  ["BatchGetItem", { RequestItems: { files: { Keys: [] } } }],
  ["BatchWriteItem", { RequestItems: { [arn]: [] } }],
  ["TransactGetItems", { TransactItems: [{ Get: other }, { Get: walled }] }],
  [
    "TransactWriteItems",
    { TransactItems: [{ ConditionCheck: { TableName: arn } }, { Put: other }] },
  ],
])("%s of %j uses the session's credentials", async (operation, input) => {
  expect(await open(operation, input)).toBe(opened);
  expect(isolation.open).toHaveBeenLastCalledWith(tag);
});

test.each<[string, unknown]>([
  ["GetItem", other],
  ["PutItem", { TableName: `${arn}/index/byOwner` }],
  ["BatchGetItem", { RequestItems: { counts: {} } }],
  ["TransactWriteItems", { TransactItems: [{ Put: other }, { Put: undefined }, null, "files"] }],
  ["ExecuteStatement", { Statement: 'SELECT * FROM "files"' }],
  ["ListTables", {}],
  ["ListTables", undefined],
])("%s of %j uses the process's own credentials", (operation, input) => {
  expect(open(operation, input)).toBeUndefined();
});

test.each(["BatchGetItem", "BatchWriteItem"])(
  "refuses %s of both kinds of tables, because no credentials cover both",
  async (operation) => {
    await expect(open(operation, { RequestItems: { files: [], counts: [] } })).rejects.toThrow(
      `${operation} has tables with tenants and others, which need different credentials here; send two commands`,
    );
  },
);

test("the tag for all tenants differs from any tenant's tag", () => {
  expect(acrossTag.key).not.toBe(tag.key);
});

test.each<[string, unknown]>([
  ["BatchGetItem", { RequestItems: { files: {}, [arn]: {} } }],
  ["TransactWriteItems", { TransactItems: [{ Put: other }, { Put: walled }] }],
])(
  "%s of walled tables and, in a transaction, of others uses one session",
  async (operation, input) => {
    expect(await open(operation, input)).toBe(opened);
  },
);

test.each<[string, unknown]>([
  ["BatchGetItem", { RequestItems: null }],
  ["TransactWriteItems", { TransactItems: "files" }],
  ["GetItem", { TableName: null }],
  ["GetItem", "files"],
  ["GetItem", ["files"]],
])("%s of %j, which DynamoDB refuses, opens no session", (operation, input) => {
  expect(open(operation, input)).toBeUndefined();
});
