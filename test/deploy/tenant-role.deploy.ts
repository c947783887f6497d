import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../src/app/features/feature.ts";
import { buildServer, serverInternals } from "../../src/app/server/server.ts";
import { access } from "../../src/base/identity/access.ts";
import { encodeTenant } from "../../src/parts/wall/tenant-prefix.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import { type IamRequest, iamRequests, type TableKeys, tablesArn } from "../iam/iam-requests.ts";
import { type Resources, roleOf } from "../iam/resolved.ts";
import { account, loadSimulator, type Simulator } from "../iam/simulator.ts";

declare module "../../src/base/types/names.ts" {
  interface Events {
    "file.made": Record<string, never>;
  }
}

const everyone = { access: access.everyone, handler: async () => 1 as never }; // nobody calls it
const features = [
  defineFeature(
    "files",
    (r) => {
      r.table("files", {
        partitionKey: "pk",
        sortKey: "sk",
        tenant: true,
        indexes: { byOwner: { partitionKey: "owner" } },
      });
      r.table("counts", { partitionKey: "pk", tenant: false });
      r.event("file.made", z.object({}));
      r.query("file.list", { route: "GET /files", ...everyone });
      r.write("file.create", { route: "POST /files", ...everyone });
    },
    { uses: { notes: "read" } },
  ),
  defineFeature("notes", (r) => {
    r.table("notes", { partitionKey: "pk", tenant: true });
    r.table("rates", { partitionKey: "pk", tenant: false });
  }),
  defineFeature("others", (r) => {
    r.table("others", { partitionKey: "pk", tenant: true });
    r.query("other.list", { route: "GET /others", ...everyone });
  }),
];
const server = serverInternals(buildServer({ features, isolation: {} }));
const prefix = "app-dev";
const resources = serverTemplate(server, { stage: "dev", shape: "each" }).Resources as Resources;
const tables = ["files", "counts", "notes", "rates", "others", "once", "outbox", "config"];

const physical = (table: string) => `${prefix}-${table}`;
const keysOf = (): TableKeys => ({ partitionKey: "pk", indexes: { byOwner: "owner" } });
const roles = {
  create: roleOf("FilesFileCreateTenantRole", resources, prefix),
  list: roleOf("FilesFileListTenantRole", resources, prefix),
  /** The function's own. */
  own: roleOf("FilesFileCreateRole", resources, prefix),
};
type RoleName = keyof typeof roles;
type Tags = Readonly<Record<string, string>>;
const arn = `arn:aws:sts::${account}:assumed-role/FilesFileCreateTenantRole/tenant-acme`;

let simulate: Simulator;
beforeAll(async () => {
  simulate = await loadSimulator();
});

/** Whether all that a command asks for is allowed to a session. */
async function isAllowed(
  operation: string,
  input: object,
  session: Tags,
  role: RoleName = "create",
): Promise<boolean> {
  return areAllowed(
    iamRequests(operation, input as Readonly<Record<string, unknown>>, keysOf),
    session,
    role,
  );
}

async function areAllowed(
  requests: readonly IamRequest[],
  session: Tags,
  role: RoleName = "create",
): Promise<boolean> {
  const { allows } = roles[role];
  const results = await Promise.all(
    requests.map((request) => simulate(request, { arn, tags: session }, { identity: allows })),
  );
  return results.every((result) => result);
}

/** Every command on a row of whose keys begin with `of`, and how the function has to reach the table for it. */
function commandsOf(
  of: string,
  name: string,
): readonly [string, object, "query" | "check" | "write"][] {
  const table = physical(name);
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
    [
      "BatchWriteItem",
      { RequestItems: { [table]: [{ PutRequest: { Item } }, { DeleteRequest: { Key } }] } },
      "write",
    ],
    ["TransactWriteItems", transact({ Put: { TableName: table, Item } }), "write"],
    [
      "TransactWriteItems",
      transact({ Update: { TableName: table, Key } }, { Delete: { TableName: table, Key } }),
      "write",
    ],
  ];
}

const byOwner = (of: string) => ({
  TableName: physical("files"),
  IndexName: "byOwner",
  KeyConditionExpression: "owner = :o",
  ExpressionAttributeValues: { ":o": `${of}/ann` },
});

const acme = { tenant: "acme" };
const strangers = ["globex", "acme2", "acm", "ACME", "", "*"];
const reaches = ["query", "check", "write"];

describe.each<[RoleName, string, string]>([
  ["create", "files", "write"],
  ["create", "notes", "check"],
  ["list", "files", "query"],
  ["list", "notes", "query"],
])("the function %s reaches the table %s to %s:", (role, table, reach) => {
  const commands = commandsOf("acme", table).map(([operation, input, needs], index) => ({
    operation,
    input,
    needs,
    index,
  }));

  test.each(commands)(
    "$operation $input is allowed only on the tenant's own rows, within the function's permissions",
    async ({ operation, input, needs, index }) => {
      expect(await isAllowed(operation, input, acme, role)).toBe(
        reaches.indexOf(needs) <= reaches.indexOf(reach),
      );
      for (const other of strangers) {
        const [, foreign = {}] = commandsOf(other, table)[index] ?? [];
        expect([other, await isAllowed(operation, foreign, acme, role)]).toEqual([other, false]);
      }
      // A session without the tag, one with another, and one whose tag is empty.
      expect(await isAllowed(operation, input, {}, role)).toBe(false);
      expect(await isAllowed(operation, input, { across: "false" }, role)).toBe(false);
      expect(await isAllowed(operation, input, { tenant: "" }, role)).toBe(false);
    },
  );
});

test("an index can be queried by the tenant's own keys, and an undeclared index by none", async () => {
  expect(await isAllowed("Query", byOwner("acme"), acme)).toBe(true);
  for (const other of strangers) expect(await isAllowed("Query", byOwner(other), acme)).toBe(false);
  expect(await isAllowed("Query", { ...byOwner("acme"), IndexName: "bySize" }, acme)).toBe(false);
});

test("a batch or transaction with one row of another tenant is denied", async () => {
  const Keys = [{ pk: "acme/files" }, { pk: "globex/files" }];
  expect(
    await isAllowed("BatchGetItem", { RequestItems: { [physical("files")]: { Keys } } }, acme),
  ).toBe(false);
  const items = Keys.map((Key) => ({ Delete: { TableName: physical("files"), Key } }));
  expect(await isAllowed("TransactWriteItems", { TransactItems: items }, acme)).toBe(false);
});

test.each(["acme", "a/b", "a=2fb", "a b", "ä😀", "x".repeat(300), "*", "?", "a*"])(
  "the tenant %j reaches its own rows, and no other tenant does",
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
])("%s is denied to every tenant", async (operation) => {
  for (const table of tables) {
    const request = {
      action: `dynamodb:${operation}`,
      resource: `${tablesArn}${physical(table)}`,
      context: {},
    };
    for (const role of ["create", "list", "own"] as const)
      expect(await areAllowed([request], acme, role)).toBe(false);
  }
});

test("a command without known keys is denied", async () => {
  for (const action of ["GetItem", "Query", "BatchGetItem", "PutItem"]) {
    const request = {
      action: `dynamodb:${action}`,
      resource: `${tablesArn}${physical("files")}`,
      context: {},
    };
    expect(await areAllowed([request], acme)).toBe(false);
    expect(
      await areAllowed([{ ...request, context: { "dynamodb:LeadingKeys": ["acme/files"] } }], acme),
    ).toBe(true);
  }
});

test("a cross-tenant session may scan, and may read and write all tenants' rows as far as the function may", async () => {
  const across = { across: "true" };
  for (const tenant of ["acme", "globex"]) {
    for (const [operation, input] of commandsOf(tenant, "files"))
      expect(await isAllowed(operation, input, across)).toBe(true);
    for (const [operation, input, needs] of commandsOf(tenant, "files")) {
      expect(await isAllowed(operation, input, across, "list")).toBe(needs === "query");
    }
  }
  expect(await isAllowed("Query", byOwner("globex"), across)).toBe(true);
  expect(await isAllowed("Scan", { TableName: physical("files") }, across)).toBe(true);
  expect(
    await isAllowed("Scan", { TableName: physical("files"), IndexName: "byOwner" }, across),
  ).toBe(true);
  expect(await isAllowed("Scan", { TableName: physical("others") }, across)).toBe(false);
});

test("claims and events can be written only in transactions, claims also checked there, and neither can be read", async () => {
  for (const table of ["once", "outbox"]) {
    for (const [operation, input] of commandsOf("claim#1", table)) {
      const actions = table === "once" ? ['"Put"', '"ConditionCheck"'] : ['"Put"']; // an answer with cookies checks its claim
      const isIn =
        operation === "TransactWriteItems" &&
        actions.some((action) => JSON.stringify(input).includes(action));
      expect([table, operation, input, await isAllowed(operation, input, acme)]).toEqual([
        table,
        operation,
        input,
        isIn,
      ]);
    }
  }
});

test("tables without tenants are reachable only in transactions, within the function's permissions", async () => {
  for (const [table, reach] of [
    ["counts", "write"],
    ["rates", "check"],
  ] as const) {
    for (const [operation, input, needs] of commandsOf("any", table)) {
      const isInside =
        operation.startsWith("Transact") && reaches.indexOf(needs) <= reaches.indexOf(reach);
      expect([table, operation, await isAllowed(operation, input, acme)]).toEqual([
        table,
        operation,
        isInside,
      ]);
    }
  }
});

test("a commit of rows, a claim, an event and another table is allowed as a whole", async () => {
  const TransactItems = [
    { Put: { TableName: physical("files"), Item: { pk: "acme/files" } } },
    { ConditionCheck: { TableName: physical("notes"), Key: { pk: "acme/notes" } } },
    { Update: { TableName: physical("counts"), Key: { pk: "files" } } },
    { ConditionCheck: { TableName: physical("rates"), Key: { pk: "day" } } },
    { Put: { TableName: physical("outbox"), Item: { pk: "shard#1" } } },
    { Put: { TableName: physical("once"), Item: { pk: "claim" } } },
  ];
  expect(await isAllowed("TransactWriteItems", { TransactItems }, acme)).toBe(true);
});

test("the function's own role loses access to tenant rows, and keeps all other permissions", async () => {
  for (const table of ["files", "notes", "others"]) {
    for (const [operation, input] of commandsOf("acme", table))
      expect(await isAllowed(operation, input, acme, "own")).toBe(false);
  }
  expect(await isAllowed("Query", byOwner("acme"), acme, "own")).toBe(false);
  for (const [operation, input] of commandsOf("any", "counts"))
    expect(await isAllowed(operation, input, {}, "own")).toBe(true);
  const Item = { pk: "claim" };
  expect(await isAllowed("PutItem", { TableName: physical("once"), Item }, {}, "own")).toBe(true);
});

test("tables of other features are denied", async () => {
  for (const session of [acme, { across: "true" }]) {
    for (const [operation, input] of commandsOf("acme", "others"))
      expect(await isAllowed(operation, input, session)).toBe(false);
  }
});

describe("the role is assumed", () => {
  const own = `arn:aws:iam::${account}:role/FilesFileCreateRole`;
  const request = (action: string, tags: Readonly<Record<string, string>>) => ({
    action,
    resource: `arn:aws:iam::${account}:role/FilesFileCreateTenantRole`,
    context: {
      ...(Object.keys(tags).length === 0 ? {} : { "aws:TagKeys": Object.keys(tags) }),
      ...Object.fromEntries(
        Object.entries(tags).map(([name, value]) => [`aws:RequestTag/${name}`, value]),
      ),
    },
  });

  test.each<[string, Readonly<Record<string, string>>, boolean]>([
    ["by the function's role with a tenant", { tenant: "acme" }, true],
    ["by the function's role for every tenant", { across: "true" }, true],
    ["never without a tag", {}, false],
    ["never with another tag", { tenant: "acme", admin: "true" }, false],
  ])("%s", async (_, given, allowed) => {
    for (const action of ["sts:AssumeRole", "sts:TagSession"]) {
      expect(
        await simulate(request(action, given), { arn: own }, { resource: roles.create.trusts }),
      ).toBe(allowed);
    }
  });

  test("by no other principal", async () => {
    for (const other of [
      `${own}2`,
      `arn:aws:iam::${account}:user/ann`,
      `arn:aws:iam::210987654321:role/FilesFileCreateRole`,
    ]) {
      expect(
        await simulate(
          request("sts:AssumeRole", { tenant: "acme" }),
          { arn: other },
          { resource: roles.create.trusts },
        ),
      ).toBe(false);
    }
  });
});
