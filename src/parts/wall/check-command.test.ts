import { expect, test } from "vitest";
import { createCommandCheck } from "./check-command.ts";
import { tableOf, type WalledTable } from "./walled-table.ts";

const files: WalledTable = {
  name: "files",
  partitionKey: "pk",
  indexes: new Map([
    ["byOwner", "owner"],
    ["byState", "state"],
  ]),
  led: ["pk", "owner", "state"],
};
const check = createCommandCheck(new Map([["prod-files", files]]));
const arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/prod-files";

/** What is said of a command of the tenant `acme`. */
const refusalOf = (operation: string, input: unknown) => check(operation, input, "acme/");

type Value = string | { readonly S: string };
/** How a text is written: as a document client takes it, and as it is sent. */
const forms: readonly [string, (text: string) => Value][] = [
  ["document", (text) => text],
  ["marshalled", (text) => ({ S: text })],
];
const tables = [
  "prod-files",
  arn,
  arn.replace("aws", "aws-cn").replace("eu-central-1", "cn-north-1"),
];

/** Every command that touches a row, of a tenant whose keys begin with `of`. */
function commandsOf(
  of: string,
  TableName: string,
  as: (text: string) => Value,
): readonly [string, object][] {
  const Key = { pk: as(`${of}/files`), sk: as("1") };
  const owner = as(`${of}/ann`);
  const Item = { ...Key, owner };
  const update = {
    Key,
    UpdateExpression: "SET #n = :n",
    ExpressionAttributeNames: { "#n": "name" },
    ExpressionAttributeValues: { ":n": as("x") },
  };
  const byKey = {
    KeyConditionExpression: "#pk = :pk",
    ExpressionAttributeNames: { "#pk": "pk" },
    ExpressionAttributeValues: { ":pk": as(`${of}/files`) },
  };
  const byOwner = {
    IndexName: "byOwner",
    KeyConditionExpression: "owner = :o",
    ExpressionAttributeValues: { ":o": owner },
  };
  return [
    ["GetItem", { TableName, Key }],
    ["PutItem", { TableName, Item }],
    ["PutItem", { TableName, Item: Key }],
    ["UpdateItem", { TableName, ...update }],
    ["UpdateItem", { TableName, Key }],
    ["DeleteItem", { TableName, Key, ReturnValues: "ALL_OLD" }],
    ["Query", { TableName, ...byKey }],
    ["Query", { TableName, ...byKey, ExclusiveStartKey: Key }],
    ["Query", { TableName, ...byOwner }],
    ["Query", { TableName, ...byOwner, ExclusiveStartKey: Item }],
    [
      "BatchGetItem",
      { RequestItems: { other: { Keys: [{ id: as("1") }] }, [TableName]: { Keys: [Key] } } },
    ],
    ["BatchWriteItem", { RequestItems: { [TableName]: [{ PutRequest: { Item } }] } }],
    [
      "BatchWriteItem",
      {
        RequestItems: {
          other: [{ PutRequest: { Item: {} } }],
          [TableName]: [{ DeleteRequest: { Key } }],
        },
      },
    ],
    [
      "TransactGetItems",
      { TransactItems: [{ Get: { TableName: "other", Key: {} } }, { Get: { TableName, Key } }] },
    ],
    ["TransactWriteItems", { TransactItems: [{ Put: { TableName, Item } }] }],
    [
      "TransactWriteItems",
      { TransactItems: [{ Put: undefined, Update: { TableName, ...update } }] },
    ],
    [
      "TransactWriteItems",
      { TransactItems: [{ Delete: { TableName, Key } }], ClientRequestToken: "t" },
    ],
    [
      "TransactWriteItems",
      {
        TransactItems: [
          { ConditionCheck: { TableName, Key, ConditionExpression: "attribute_exists(pk)" } },
        ],
      },
    ],
  ];
}

const cases = tables.flatMap((table) =>
  forms.flatMap(([form, as]) =>
    commandsOf("acme", table, as).map(([operation], index) => ({
      table,
      form,
      as,
      operation,
      index,
    })),
  ),
);

test.each(cases)(
  "$operation ($index, $form, $table): accepts the tenant's own rows, and refuses other tenants'",
  ({ table, as, index }) => {
    const command = (of: string) => commandsOf(of, table, as)[index] as [string, object];
    expect(refusalOf(...command("acme"))).toBeUndefined();
    for (const other of ["globex", "acme2", "acm", "ACME", ""]) {
      expect(refusalOf(...command(other))).toEqual({
        table: "files",
        reason: expect.stringContaining("tenant"),
      });
    }
    expect(check(...command("acme"), undefined)).toEqual({
      table: "files",
      reason: "the run has no tenant",
    });
  },
);

test.each(commandsOf("globex", "prod-orders", (text) => text))(
  "%s is allowed on a table without tenants: %j",
  (operation, input) => {
    expect(refusalOf(operation, input)).toBeUndefined();
    expect(check(operation, input, undefined)).toBeUndefined();
  },
);

test.each([
  "ExecuteStatement",
  "BatchExecuteStatement",
  "ExecuteTransaction",
  "DescribeTable",
  "DeleteTable",
  "UpdateTable",
  "CreateBackup",
  "ExportTableToPointInTime",
  "SearchVectors",
  "toString",
  "",
])("refuses %s on any table", (operation) => {
  for (const TableName of ["prod-files", "prod-orders", undefined]) {
    expect(refusalOf(operation, { TableName })).toEqual({
      table: undefined,
      reason: "only commands on items can be checked",
    });
  }
});

test("allows a scan only on tables without tenants", () => {
  expect(refusalOf("Scan", { TableName: "prod-orders" })).toBeUndefined();
  expect(refusalOf("Scan", { TableName: "prod-files" })).toEqual({
    table: "files",
    reason: "a scan reads the rows of every tenant",
  });
  expect(refusalOf("Scan", { TableName: arn, IndexName: "byOwner" })?.table).toBe("files");
});

const TableName = "prod-files";
const Key = { pk: "acme/files", sk: "1" };
const byKey = {
  TableName,
  KeyConditionExpression: "pk = :pk",
  ExpressionAttributeValues: { ":pk": "acme/files", ":x": "globex/files" },
};
const update = (UpdateExpression: string, rest: object = {}) => ({
  TableName,
  Key,
  UpdateExpression,
  ExpressionAttributeNames: { "#o": "owner", "#n": "name", "#": 7 },
  ExpressionAttributeValues: {
    ":own": "acme/ann",
    ":other": "globex/gil",
    ":n": { N: "1" },
    ":two": { S: "acme/a", N: "1" },
  },
  ...rest,
});

test.each([
  "SET owner = :own",
  "SET #n = :other, #o = :own",
  "REMOVE owner",
  "REMOVE #o, #n ADD size :n",
  "SET owner2 = :other",
  "SET #n.owner = :other",
])("allows the update %s", (expression) => {
  expect(refusalOf("UpdateItem", update(expression))).toBeUndefined();
});

test.each<[string, string]>([
  ["SET owner = :other", "owner does not start with the tenant"],
  ["SET #n = :own, #o = :other", "owner does not start with the tenant"],
  ["SET state = :n", "state does not start with the tenant"],
  ["SET state = :two", "state does not start with the tenant"],
  ["SET owner = :absent", "owner does not start with the tenant"],
  ["SET owner = #n", "owner may only be set to a value or removed"],
  ["SET owner = if_not_exists(owner, :own)", "owner may only be set to a value or removed"],
  ["SET owner = :own + :n", "owner may only be set to a value or removed"],
  ["SET owner.a = :own", "owner may only be set to a value or removed"],
  ["SET owner[0] = :own", "owner may only be set to a value or removed"],
  ["REMOVE owner.a", "owner may only be set to a value or removed"],
  ["ADD owner :n", "owner may only be set to a value or removed"],
  ["DELETE owner :own", "owner may only be set to a value or removed"],
  ["SET #unknown = :own", "its UpdateExpression names no attribute"],
  ["SET # = :own", "its UpdateExpression cannot be read"],
  ["owner = :own", "its UpdateExpression cannot be read"],
])("refuses the update %s, which would affect an index: %s", (expression, reason) => {
  expect(refusalOf("UpdateItem", update(expression))).toEqual({ table: "files", reason });
  const item = { Update: update(expression) };
  expect(refusalOf("TransactWriteItems", { TransactItems: [item] })).toEqual({
    table: "files",
    reason,
  });
});

test.each<[string, object, string]>([
  [
    "PutItem",
    { TableName, Item: { ...Key, owner: "globex/gil" } },
    "owner does not start with the tenant",
  ],
  ["PutItem", { TableName, Item: { ...Key, owner: null } }, "owner does not start with the tenant"],
  ["PutItem", { TableName, Item: { sk: "1", owner: "acme/ann" } }, "it has no pk"],
  [
    "PutItem",
    { TableName, Item: { ...Key, state: ["acme/"] } },
    "state does not start with the tenant",
  ],
  ["PutItem", { TableName }, "the command cannot be read"],
  ["PutItem", { TableName, Item: Key, Expected: {} }, "the parameter Expected cannot be checked"],
  ["GetItem", { TableName, Key: ["acme/"] }, "the command cannot be read"],
  ["GetItem", { TableName, Key: { pk: { B: "acme/" } } }, "pk does not start with the tenant"],
  ["GetItem", { TableName, Key: { pk: { S: 7 } } }, "pk does not start with the tenant"],
  [
    "UpdateItem",
    update("SET owner = :own", { ExpressionAttributeValues: undefined }),
    "owner does not start with the tenant",
  ],
  [
    "UpdateItem",
    update("SET #o = :own", { ExpressionAttributeNames: undefined }),
    "its UpdateExpression names no attribute",
  ],
  ["UpdateItem", { TableName, Key, UpdateExpression: 7 }, "its UpdateExpression cannot be read"],
  [
    "UpdateItem",
    { TableName, Key, AttributeUpdates: {} },
    "the parameter AttributeUpdates cannot be checked",
  ],
  ["Query", { ...byKey, KeyConditionExpression: "pk = :x" }, "pk does not start with the tenant"],
  [
    "Query",
    { ...byKey, KeyConditionExpression: "pk = :pk AND pk = :x" },
    "pk does not start with the tenant",
  ],
  [
    "Query",
    { ...byKey, KeyConditionExpression: "pk = :pk AND pk > :pk" },
    "pk does not start with the tenant",
  ],
  [
    "Query",
    { ...byKey, KeyConditionExpression: "begins_with(pk, :pk)" },
    "pk does not start with the tenant",
  ],
  ["Query", { ...byKey, KeyConditionExpression: "sk = :pk" }, "it has no condition on pk"],
  [
    "Query",
    { ...byKey, KeyConditionExpression: "pk = :pk OR pk = :x" },
    "its KeyConditionExpression cannot be read",
  ],
  ["Query", { ...byKey, IndexName: "byOwner" }, "it has no condition on owner"],
  ["Query", { ...byKey, IndexName: "bySize" }, "its index is not declared"],
  ["Query", { TableName, KeyConditions: {} }, "the parameter KeyConditions cannot be checked"],
  ["Query", { TableName }, "its KeyConditionExpression cannot be read"],
  ["Query", { ...byKey, QueryFilter: {} }, "the parameter QueryFilter cannot be checked"],
  [
    "Query",
    { ...byKey, ExclusiveStartKey: { pk: "globex/files", sk: "1" } },
    "its ExclusiveStartKey is not one of this tenant",
  ],
  ["Query", { ...byKey, ExclusiveStartKey: {} }, "its ExclusiveStartKey is not one of this tenant"],
  [
    "Query",
    { ...byKey, ExclusiveStartKey: null },
    "its ExclusiveStartKey is not one of this tenant",
  ],
  [
    "Query",
    {
      ...byKey,
      IndexName: "byOwner",
      KeyConditionExpression: "owner = :pk",
      ExclusiveStartKey: { ...Key, owner: "globex/gil" },
    },
    "its ExclusiveStartKey is not one of this tenant",
  ],
  [
    "BatchGetItem",
    { RequestItems: { [TableName]: { Keys: [Key, { pk: "globex/files" }] } } },
    "pk does not start with the tenant",
  ],
  ["BatchGetItem", { RequestItems: { [TableName]: { Keys: Key } } }, "the command cannot be read"],
  ["BatchGetItem", { RequestItems: { [TableName]: 7 } }, "the command cannot be read"],
  [
    "BatchWriteItem",
    { RequestItems: { [TableName]: [{ PutRequest: { Item: Key }, DeleteRequest: { Key } }] } },
    "the command cannot be read",
  ],
  ["BatchWriteItem", { RequestItems: { [TableName]: [{}] } }, "the command cannot be read"],
  ["BatchWriteItem", { RequestItems: { [TableName]: [7] } }, "the command cannot be read"],
  [
    "BatchWriteItem",
    { RequestItems: { [TableName]: [{ PutRequest: 7 }] } },
    "the command cannot be read",
  ],
])("refuses %s with %j: %s", (operation, input, reason) => {
  expect(refusalOf(operation, input)).toEqual({ table: "files", reason });
});

test.each<[string, unknown]>([
  ["GetItem", undefined],
  ["GetItem", { Key }],
  ["GetItem", { TableName: 7, Key }],
  ["GetItem", { TableName: "prod-files ", Key }],
  ["GetItem", { TableName: `${arn}/index/byOwner`, Key }],
  ["BatchGetItem", {}],
  ["TransactGetItems", {}],
  ["TransactWriteItems", { TransactItems: [{ Upsert: { TableName, Key } }] }],
  ["TransactWriteItems", { TransactItems: [null] }],
])("refuses unreadable %s with %j on any table", (operation, input) => {
  expect(refusalOf(operation, input)).toEqual({
    table: undefined,
    reason: expect.stringContaining("cannot be read"),
  });
});

test("recognises a table by its name or by an ARN of any account", () => {
  expect([
    tableOf("a.b_c-1"),
    tableOf(arn),
    tableOf("a/b"),
    tableOf("arn:x"),
    tableOf(null),
  ]).toEqual(["a.b_c-1", "prod-files", undefined, undefined, undefined]);
});

test("checks generated expressions like any others", () => {
  for (let index = 0; index < 1_100; index++) {
    expect(refusalOf("UpdateItem", update(`SET a${index} = :own, owner = :other`))).toBeDefined();
  }
  expect(refusalOf("UpdateItem", update("SET a0 = :own, owner = :own"))).toBeUndefined();
});

const everywhere = {
  TableName,
  ReturnConsumedCapacity: "TOTAL",
  ReturnItemCollectionMetrics: "SIZE",
  ExpressionAttributeNames: {},
};
const reading = {
  ...everywhere,
  AttributesToGet: ["pk"],
  ConsistentRead: true,
  ProjectionExpression: "pk",
};
const writing = {
  ...everywhere,
  ExpressionAttributeValues: { ":pk": "acme/files" },
  ConditionExpression: "attribute_exists(pk)",
  ReturnValues: "ALL_OLD",
  ReturnValuesOnConditionCheckFailure: "ALL_OLD",
};
const known: Readonly<Record<string, object>> = {
  GetItem: { ...reading, Key },
  PutItem: { ...writing, Item: Key },
  UpdateItem: { ...writing, Key, UpdateExpression: "REMOVE size" },
  DeleteItem: { ...writing, Key },
  Query: {
    ...reading,
    ...{ IndexName: undefined, Select: "COUNT", Limit: 1, ScanIndexForward: false },
    ...{ ExclusiveStartKey: Key, FilterExpression: "size > :pk" },
    ...{ KeyConditionExpression: "pk = :pk", ExpressionAttributeValues: { ":pk": "acme/files" } },
  },
};

test.each(Object.entries(known))(
  "%s may have each parameter that the check knows, and no other",
  (operation, input) => {
    expect(refusalOf(operation, input)).toBeUndefined();
    expect(refusalOf(operation, { ...input, Unheard: undefined })).toBeUndefined();
    expect(refusalOf(operation, { ...input, Unheard: null })).toEqual({
      table: "files",
      reason: "the parameter Unheard cannot be checked",
    });
  },
);

test.each(["Key", "Item", "Keys", "UpdateExpression", "PutRequest"])(
  "a query has no parameter %s",
  (name) => {
    expect(refusalOf("Query", { ...known["Query"], [name]: Key })?.reason).toBe(
      `the parameter ${name} cannot be checked`,
    );
  },
);

test("a part of a batch or a transaction has its own parameters only", () => {
  const unheard = { table: "files", reason: "the parameter Unheard cannot be checked" };
  const foreign = { table: "files", reason: "pk does not start with the tenant" };
  const Item = { pk: "globex/files" };
  const batch = (request: object) => ({ RequestItems: { [TableName]: [request] } });
  const transaction = (item: object) => ({ TransactItems: [item] });
  for (const [request, refusal] of [
    [{ PutRequest: { Item: Key, Unheard: 1 } }, unheard],
    [{ DeleteRequest: { Key, Unheard: 1 } }, unheard],
    [{ PutRequest: { Item } }, foreign],
    [{ DeleteRequest: { Key: Item } }, foreign],
  ] as const)
    expect(refusalOf("BatchWriteItem", batch(request))).toEqual(refusal);
  for (const action of ["Put", "Update", "Delete", "ConditionCheck"]) {
    const given = { TableName, [action === "Put" ? "Item" : "Key"]: Item };
    expect(refusalOf("TransactWriteItems", transaction({ [action]: given }))).toEqual(foreign);
    expect(refusalOf("TransactGetItems", transaction({ [action]: given }))).toEqual({
      table: undefined,
      reason: "the command cannot be read",
    });
  }
  const keys = { Keys: [Key], Unheard: 1 };
  expect(refusalOf("BatchGetItem", { RequestItems: { [TableName]: keys } })).toEqual(unheard);
});

test.each<[string, object]>([
  ["BatchGetItem", { RequestItems: [] }],
  ["BatchGetItem", { RequestItems: null }],
  ["BatchWriteItem", { RequestItems: "prod-files" }],
  ["TransactGetItems", { TransactItems: {} }],
  ["TransactWriteItems", { TransactItems: [{}] }],
  ["TransactWriteItems", { TransactItems: [["Put"]] }],
  ["TransactWriteItems", { TransactItems: [{ Put: 7 }] }],
  ["TransactWriteItems", { TransactItems: [{ Put: undefined }] }],
  ["TransactWriteItems", { TransactItems: [{ toString: { TableName, Key } }] }],
  [
    "TransactWriteItems",
    { TransactItems: [{ Delete: { TableName, Key }, ConditionCheck: { TableName, Key } }] },
  ],
])("cannot read the parts of %s with %j", (operation, input) => {
  expect(refusalOf(operation, input)).toEqual({
    table: undefined,
    reason: "the command cannot be read",
  });
});

test.each<[string, unknown]>([
  ["GetItem", { Key }],
  ["GetItem", "prod-files"],
  ["PutItem", [TableName]],
  ["BatchGetItem", { RequestItems: { "no name": { Keys: [] } } }],
  ["TransactGetItems", { TransactItems: [{ Get: { Key } }] }],
])("%s of %j names no table that can be read", (operation, input) => {
  expect(refusalOf(operation, input)).toEqual({
    table: undefined,
    reason: "the name of its table cannot be read",
  });
});

test("checks each table and each part of a command, wherever the foreign one is", () => {
  const foreign = { pk: "globex/files" };
  const at = (index: number) => [Key, Key, Key].with(index, foreign as typeof Key);
  for (const index of [0, 1, 2]) {
    const keys = { RequestItems: { [TableName]: { Keys: at(index) } } };
    const puts = at(index).map((Item) => ({ PutRequest: { Item } }));
    const items = at(index).map((Item) => ({ Put: { TableName, Item } }));
    const gets = at(index).map((key) => ({ Get: { TableName, Key: key } }));
    for (const [operation, input] of [
      ["BatchGetItem", keys],
      ["BatchWriteItem", { RequestItems: { other: [], [TableName]: puts } }],
      ["TransactWriteItems", { TransactItems: items }],
      ["TransactGetItems", { TransactItems: gets }],
    ] as const)
      expect(refusalOf(operation, input)?.reason).toBe("pk does not start with the tenant");
  }
  const both = { [TableName]: { Keys: [Key] }, [arn]: { Keys: [foreign] } };
  expect(refusalOf("BatchGetItem", { RequestItems: both })?.table).toBe("files");
});
