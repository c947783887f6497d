import { GetCommand, PutCommand } from "@aws-sdk/lib-dynamodb";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { openAssumedRole } from "../../src/aws/assumed-role.ts";
import { openDatabase } from "../../src/aws/dynamodb.ts";
import type { TableDeclaration } from "../../src/declare/table.ts";
import { onceTable, outboxTable } from "../../src/declare/table.ts";
import { tenantRoleId, tenantRolePart } from "../../src/infra/isolation-part.ts";
import { neededTable } from "../../src/infra/needs.ts";
import { tableId, tablePart } from "../../src/infra/table-part.ts";
import { attributeOf, substituted } from "../../src/infra/template.ts";
import { requestDatabases } from "../../src/run/request-database.ts";
import { encodeTenant } from "../../src/wall/tenant-prefix.ts";
import { createWall } from "../../src/wall/wall.ts";
import { type IamRequest, iamRequests, type TableKeys, tablesArn } from "../iam/iam-requests.ts";
import { type Resources, roleOf } from "../iam/resolved.ts";
import { account, loadSimulator, type Simulator } from "../iam/simulator.ts";

const files: TableDeclaration = {
  name: "files",
  partitionKey: "pk",
  sortKey: "sk",
  tenant: true,
  indexes: [{ name: "byOwner", partitionKey: "owner", sortKey: undefined, project: undefined }],
};
const notes: TableDeclaration = { name: "notes", partitionKey: "pk", sortKey: undefined, tenant: true, indexes: [] };
const tags: TableDeclaration = { name: "tags", partitionKey: "pk", sortKey: undefined, tenant: true, indexes: [] };
const counts: TableDeclaration = { name: "counts", partitionKey: "pk", sortKey: undefined, indexes: [] };
const rates: TableDeclaration = { name: "rates", partitionKey: "pk", sortKey: undefined, indexes: [] };
const others: TableDeclaration = { ...files, name: "others" };
const all = [files, notes, tags, counts, rates, others, onceTable, outboxTable];

const keysOf = (name: string): TableKeys => {
  const table = all.find((one) => one.name === name);
  const indexes = table?.indexes.map((index) => [index.name, index.partitionKey]) ?? [];
  return { partitionKey: table?.partitionKey ?? "pk", indexes: Object.fromEntries(indexes) };
};

const role = "FilesRole";
const resources = Object.assign(
  { [role]: { Type: "AWS::IAM::Role", Properties: {} } },
  ...all.map((table) => tablePart(neededTable(table, table.name)).Resources),
  tenantRolePart(
    {
      role,
      tables: [
        { table: files, reach: "write" },
        { table: notes, reach: "check" },
        { table: tags, reach: "query" },
        { table: counts, reach: "write" },
        { table: rates, reach: "check" },
      ],
      committed: [onceTable, outboxTable],
    },
    {
      tableArn: ({ name }) => attributeOf(tableId(name), "Arn"),
      indexArn: ({ name }, index) => substituted(`\${${tableId(name)}.Arn}/index/${index}`),
    },
  ).Resources,
) as Resources; // safe: parts of a template
const { allows, trusts } = roleOf(tenantRoleId(role), resources, "app-dev");
const arn = `arn:aws:sts::${account}:assumed-role/${tenantRoleId(role)}/tenant-acme`;

let simulate: Simulator;
beforeAll(async () => {
  simulate = await loadSimulator();
});

/** Whether all that a command asks for is allowed to a session. */
async function isAllowed(operation: string, input: object, session: Readonly<Record<string, string>>): Promise<boolean> {
  return areAllowed(iamRequests(operation, input as Readonly<Record<string, unknown>>, keysOf), session);
}

async function areAllowed(requests: readonly IamRequest[], session: Readonly<Record<string, string>>): Promise<boolean> {
  const results = await Promise.all(requests.map((request) => simulate(request, { arn, tags: session }, { identity: allows })));
  return results.every((result) => result);
}

/** Every command on a row of whose keys begin with `of`, and how the function has to reach the table for it. */
function commandsOf(of: string, table: string): readonly [string, object, "query" | "check" | "write"][] {
  const [key, owner] = [`${of}/files`, `${of}/ann`];
  const Key = { pk: key };
  const Item = { pk: key, owner };
  const query = {
    KeyConditionExpression: "#pk = :pk",
    ExpressionAttributeNames: { "#pk": "pk" },
    ExpressionAttributeValues: { ":pk": key },
  };
  const transact = (...items: readonly object[]) => ({ TransactItems: items });
  return [
    ["GetItem", { TableName: table, Key }, "query"],
    ["GetItem", { TableName: `${tablesArn}${table}`, Key }, "query"],
    ["Query", { TableName: table, ...query }, "query"],
    ["BatchGetItem", { RequestItems: { [table]: { Keys: [Key, Key] } } }, "query"],
    ["TransactGetItems", transact({ Get: { TableName: table, Key } }), "query"],
    ["TransactWriteItems", transact({ ConditionCheck: { TableName: table, Key } }), "check"],
    ["PutItem", { TableName: table, Item }, "write"],
    ["UpdateItem", { TableName: table, Key }, "write"],
    ["DeleteItem", { TableName: table, Key }, "write"],
    ["BatchWriteItem", { RequestItems: { [table]: [{ PutRequest: { Item } }, { DeleteRequest: { Key } }] } }, "write"],
    ["TransactWriteItems", transact({ Put: { TableName: table, Item } }), "write"],
    ["TransactWriteItems", transact({ Update: { TableName: table, Key } }, { Delete: { TableName: table, Key } }), "write"],
  ];
}

const byOwner = (of: string) => ({
  TableName: "files",
  IndexName: "byOwner",
  KeyConditionExpression: "owner = :o",
  ExpressionAttributeValues: { ":o": `${of}/ann` },
});

const acme = { tenant: "acme" };
const strangers = ["globex", "acme2", "acm", "ACME", "", "*"];
const reaches = ["query", "check", "write"];

describe.each([
  ["files", "write"],
  ["notes", "check"],
  ["tags", "query"],
])("of the table %s, which the function reaches to %s,", (table, reach) => {
  const commands = commandsOf("acme", table).map(([operation, input, needs], index) => ({ operation, input, needs, index }));

  test.each(commands)(
    "$operation $input is allowed on the tenant's own rows, as far as the function goes, and on no other's",
    async ({ operation, input, needs, index }) => {
      expect(await isAllowed(operation, input, acme)).toBe(reaches.indexOf(needs) <= reaches.indexOf(reach));
      for (const other of strangers) {
        const [, foreign = {}] = commandsOf(other, table)[index] ?? [];
        expect([other, await isAllowed(operation, foreign, acme)]).toEqual([other, false]);
      }
      // A session without the tag, one with another, and one whose tag is empty.
      expect(await isAllowed(operation, input, {})).toBe(false);
      expect(await isAllowed(operation, input, { across: "false" })).toBe(false);
      expect(await isAllowed(operation, input, { tenant: "" })).toBe(false);
    },
  );
});

test("an index is queried by keys of the tenant, and one that is not declared by none", async () => {
  expect(await isAllowed("Query", byOwner("acme"), acme)).toBe(true);
  for (const other of strangers) expect(await isAllowed("Query", byOwner(other), acme)).toBe(false);
  expect(await isAllowed("Query", { ...byOwner("acme"), IndexName: "bySize" }, acme)).toBe(false);
});

test("a batch with one row of another tenant is denied, and so is a transaction", async () => {
  const Keys = [{ pk: "acme/files" }, { pk: "globex/files" }];
  expect(await isAllowed("BatchGetItem", { RequestItems: { files: { Keys } } }, acme)).toBe(false);
  const items = Keys.map((Key) => ({ Delete: { TableName: "files", Key } }));
  expect(await isAllowed("TransactWriteItems", { TransactItems: items }, acme)).toBe(false);
});

test.each(["acme", "a/b", "a=2fb", "a b", "ä😀", "x".repeat(300), "*", "?", "a*"])(
  "the tenant %j reaches its own rows, and nobody else does",
  async (tenant) => {
    const own = encodeTenant(tenant);
    for (const [operation, input] of commandsOf(own, "files")) {
      expect(await isAllowed(operation, input, { tenant: own })).toBe(true);
      expect(await isAllowed(operation, input, { tenant: encodeTenant(`${tenant}x`) })).toBe(false);
    }
  },
);

test.each([
  "Scan",
  "PartiQLSelect",
  "PartiQLInsert",
  "PartiQLUpdate",
  "PartiQLDelete",
  "DescribeTable",
  "DeleteTable",
  "UpdateTable",
  "CreateBackup",
  "ExportTableToPointInTime",
])("%s is allowed to no tenant", async (operation) => {
  for (const table of all) {
    const request = { action: `dynamodb:${operation}`, resource: `${tablesArn}${table.name}`, context: {} };
    expect(await areAllowed([request], acme)).toBe(false);
  }
});

test("a command of which no key is known is denied", async () => {
  for (const action of ["GetItem", "Query", "BatchGetItem", "PutItem"]) {
    const request = { action: `dynamodb:${action}`, resource: `${tablesArn}files`, context: {} };
    expect(await areAllowed([request], acme)).toBe(false);
    expect(await areAllowed([{ ...request, context: { "dynamodb:LeadingKeys": ["acme/files"] } }], acme)).toBe(true);
  }
});

test("a session for every tenant reads and writes what the function does, of every tenant, and scans", async () => {
  const across = { across: "true" };
  for (const tenant of ["acme", "globex"]) {
    for (const [operation, input] of commandsOf(tenant, "files")) expect(await isAllowed(operation, input, across)).toBe(true);
    for (const [operation, input, needs] of commandsOf(tenant, "tags")) {
      expect(await isAllowed(operation, input, across)).toBe(needs === "query");
    }
  }
  expect(await isAllowed("Query", byOwner("globex"), across)).toBe(true);
  expect(await isAllowed("Scan", { TableName: "files" }, across)).toBe(true);
  expect(await isAllowed("Scan", { TableName: "files", IndexName: "byOwner" }, across)).toBe(true);
  expect(await isAllowed("Scan", { TableName: "others" }, across)).toBe(false);
});

test("claims and events are written inside of a transaction alone, and never read", async () => {
  for (const table of ["once", "outbox"]) {
    for (const [operation, input] of commandsOf("claim#1", table)) {
      const isPut = operation === "TransactWriteItems" && JSON.stringify(input).includes('"Put"');
      expect([table, operation, input, await isAllowed(operation, input, acme)]).toEqual([table, operation, input, isPut]);
    }
  }
});

test("tables without tenants are reached inside of transactions alone, as far as the function goes", async () => {
  for (const [table, reach] of [
    ["counts", "write"],
    ["rates", "check"],
  ] as const) {
    for (const [operation, input, needs] of commandsOf("any", table)) {
      const isInside = operation.startsWith("Transact") && reaches.indexOf(needs) <= reaches.indexOf(reach);
      expect([table, operation, await isAllowed(operation, input, acme)]).toEqual([table, operation, isInside]);
    }
  }
});

test("a commit of rows, a claim, an event and another table is allowed as a whole", async () => {
  const TransactItems = [
    { Put: { TableName: "files", Item: { pk: "acme/files" } } },
    { ConditionCheck: { TableName: "notes", Key: { pk: "acme/notes" } } },
    { Update: { TableName: "counts", Key: { pk: "files" } } },
    { ConditionCheck: { TableName: "rates", Key: { pk: "day" } } },
    { Put: { TableName: "outbox", Item: { pk: "shard#1" } } },
    { Put: { TableName: "once", Item: { pk: "claim" } } },
  ];
  expect(await isAllowed("TransactWriteItems", { TransactItems }, acme)).toBe(true);
});

test("tables of other features are denied", async () => {
  for (const session of [acme, { across: "true" }]) {
    for (const [operation, input] of commandsOf("acme", "others")) expect(await isAllowed(operation, input, session)).toBe(false);
  }
});

test("an emulator's STS gives sessions by the SDK, and its DynamoDB takes what they sign", async () => {
  const { endpoint, prefix } = inject("deployed");
  const database = await openDatabase({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const sessions = openAssumedRole({
    ...{ role: "arn:aws:iam::000000000000:role/tenants", database, endpoint, region: "us-east-1" },
    ...{ clock: { now: () => Date.now() }, log: { warn: () => undefined } },
  });
  const tableName = `${prefix}-files`;
  const wall = createWall([{ name: "files", tableName, partitionKey: "pk", indexes: [] }], sessions);
  const signers: unknown[] = [];
  database.middlewareStack.add(
    (next) => (given) => {
      signers.push(
        /Credential=([^/]+)/.exec((given.request as { headers: Record<string, string> }).headers["authorization"] ?? "")?.[1],
      );
      return next(given);
    },
    { step: "deserialize", priority: "low" },
  );
  const db = requestDatabases(database, wall)({ tenantId: "acme", log: { error: fail }, signal: undefined, sessionFor: fail });
  try {
    await db.send(new PutCommand({ TableName: tableName, Item: { pk: "acme/session", sk: "1", name: "a" } }));
    expect((await db.send(new GetCommand({ TableName: tableName, Key: { pk: "acme/session", sk: "1" } }))).Item).toMatchObject({
      name: "a",
    });
    expect(signers).toEqual([expect.stringMatching(/^[AL]SIA/), expect.stringMatching(/^[AL]SIA/)]);
    expect(signers[0]).toBe(signers[1]);
  } finally {
    sessions.close();
    database.destroy();
  }
});

function fail(): never {
  throw new Error("nothing is refused here");
}

describe("the role is assumed", () => {
  const own = `arn:aws:iam::${account}:role/${role}`;
  const request = (action: string, tags: Readonly<Record<string, string>>) => ({
    action,
    resource: `arn:aws:iam::${account}:role/${tenantRoleId(role)}`,
    context: {
      ...(Object.keys(tags).length === 0 ? {} : { "aws:TagKeys": Object.keys(tags) }),
      ...Object.fromEntries(Object.entries(tags).map(([name, value]) => [`aws:RequestTag/${name}`, value])),
    },
  });

  test.each<[string, Readonly<Record<string, string>>, boolean]>([
    ["by the function's role with a tenant", { tenant: "acme" }, true],
    ["by the function's role for every tenant", { across: "true" }, true],
    ["never without a tag", {}, false],
    ["never with another tag", { tenant: "acme", admin: "true" }, false],
  ])("%s", async (_, given, allowed) => {
    for (const action of ["sts:AssumeRole", "sts:TagSession"]) {
      expect(await simulate(request(action, given), { arn: own }, { resource: trusts })).toBe(allowed);
    }
  });

  test("by nobody else", async () => {
    for (const other of [`${own}2`, `arn:aws:iam::${account}:user/ann`, `arn:aws:iam::210987654321:role/${role}`]) {
      expect(await simulate(request("sts:AssumeRole", { tenant: "acme" }), { arn: other }, { resource: trusts })).toBe(false);
    }
  });
});
