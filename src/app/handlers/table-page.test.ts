import { createHash } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { ValidationError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { newRingKey, parseKeyRing } from "../../base/secrets/key-ring.ts";
import { createSecrets } from "../../base/secrets/secrets.ts";
import type { Database } from "../../base/types/database.ts";
import { type Caller, startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { ServerOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";
import type { PageOptions, TableDeclaration, TablePage } from "./table.ts";
import { readPage } from "./table-page.ts";

const asked = z.object({
  table: z.enum(["files", "copies", "turned", "single", "shared", "others"]),
  options: z.unknown(),
  across: z.string().optional(),
});
const put = z.object({
  table: asked.shape.table,
  items: z.array(z.record(z.string(), z.string())),
});

const shelf = defineFeature("shelf", (r) => {
  const keys = { partitionKey: "pk", sortKey: "sk" } as const;
  const indexes = {
    byOwner: { partitionKey: "owner", sortKey: "at" },
    byState: { partitionKey: "state" },
  };
  const tables = {
    files: r.table("files", { ...keys, tenant: true, indexes }),
    copies: r.table("copies", { ...keys, tenant: true }),
    turned: r.table("turned", {
      ...keys,
      tenant: true,
      indexes: { bySort: { partitionKey: "sk", sortKey: "pk" } },
    }),
    single: r.table("single", { partitionKey: "pk", tenant: true }),
    shared: r.table("shared", { ...keys, tenant: false, indexes }),
    others: r.table("others", { ...keys, tenant: false }),
  };
  const read = r.query("page.read", {
    input: asked,
    handler: async (ctx, { table, options, across }) => {
      const of =
        across === undefined
          ? ctx
          : { user: { tenantId: across }, db: ctx.acrossTenants("to read their pages") };
      return await tables[table].page(of, options as PageOptions<never>); // as plain JavaScript gives anything
    },
  });
  r.query("page.show", {
    route: "GET /pages",
    access: access.tenant,
    input: z.object({ cursor: z.string() }),
    handler: (ctx, { cursor }) => tables.files.page(ctx, { partition: "list", limit: 2, cursor }),
  });
  const fill = r.write("page.fill", {
    input: put,
    handler: async (ctx, { table, items }) => {
      const TableName = tables[table].name;
      await Promise.all(items.map((Item) => ctx.db.send(new PutCommand({ TableName, Item }))));
    },
  });
  return { tables, read, fill };
});

const [ann, eve] = [
  { id: "ann", tenantId: "acme" },
  { id: "eve", tenantId: "evil" },
];
type Table = z.infer<typeof asked>["table"];
type Options = Omit<Partial<PageOptions>, "cursor"> & { readonly cursor?: unknown };

/** A page of the table `files`, unless the options name another. */
const read = (
  app: TestApp,
  options: Options,
  { table = "files" as Table, as = ann as Caller | null } = {},
): Promise<TablePage> => app.call(shelf.read, { table, options }, as === null ? {} : { as });

const sortKeys = ({ items }: TablePage) => items.map(({ sk }) => sk);

/** The sort keys of all pages, each page from the cursor of the one before. */
async function pagesOf(app: TestApp, options: Options, by: Parameters<typeof read>[2] = {}) {
  const pages: unknown[][] = [];
  let cursor: string | undefined;
  do {
    const page = await read(app, { ...options, ...(cursor && { cursor }) }, by);
    pages.push(sortKeys(page));
    cursor = page.cursor;
  } while (cursor !== undefined && pages.length < 20);
  return pages;
}

const cursorOf = async (app: TestApp, options: Options, by: Parameters<typeof read>[2] = {}) => {
  const { cursor } = await read(app, options, by);
  if (cursor === undefined) throw new Error("this is the last page");
  return cursor;
};

const named = (names: string, more: (name: string) => object) =>
  names.split(" ").map((sk) => ({ sk, ...more(sk) }));

async function start(keyRing?: ServerOptions["keyRing"]): Promise<TestApp> {
  const ring = JSON.stringify({ active: "k1", keys: { k1: newRingKey() } });
  const app = await startTestApp(
    buildServer({ features: [shelf], ...(keyRing && { keyRing }) }),
    // Elsewhere, a server without a key ring gets one for development.
    { environment: "production", ...(keyRing && { secureParameters: { "/ring": ring } }) },
  );
  const owned = (sk: string) => ({ owner: "acme/ann", at: `at ${sk}`, state: "acme/open" });
  const fill = (table: Table, items: object[], as = ann) =>
    app.call(shelf.fill, { table, items: items as Record<string, string>[] }, { as });
  await Promise.all([
    fill("files", [
      ...named("a1 a2 b1 b2 b3", (sk) => ({ pk: "acme/list", ...owned(sk) })),
      { pk: "acme/other", sk: "a1", ...owned("c1") },
      { pk: "acme/unlisted", sk: "z" },
    ]),
    fill(
      "files",
      named("a1 a2 a3", () => ({ pk: "evil/list" })),
      eve,
    ),
    fill(
      "copies",
      named("a1 a2 a3", () => ({ pk: "acme/list" })),
    ),
    fill(
      "turned",
      named("acme/a1 acme/a2 acme/b1", () => ({ pk: "acme/list" })),
    ),
    fill("single", [{ pk: "acme/one", text: "hi" }]),
    fill(
      "shared",
      named("a1 a2 a3", (sk) => ({ pk: "list", ...owned(sk), owner: "ann" })),
    ),
    fill(
      "others",
      named("a1 a2 a3", () => ({ pk: "list" })),
    ),
  ]);
  return app;
}

let plain: TestApp;
let sealing: TestApp;
beforeAll(async () => {
  [plain, sealing] = await Promise.all([start(), start({ parameter: "/ring" })]);
});
afterAll(() => Promise.all([plain.close(), sealing.close()]));

describe.each([
  ["without a key ring", () => plain],
  ["with a key ring", () => sealing],
])("the pages of a table %s", (_, appOf) => {
  const list = { partition: "list", limit: 2 };

  test("follow each other in the order of the sort key, or from its end", async () => {
    expect(await pagesOf(appOf(), list)).toEqual([["a1", "a2"], ["b1", "b2"], ["b3"]]);
    expect(await pagesOf(appOf(), { ...list, descending: true })).toEqual([
      ["b3", "b2"],
      ["b1", "a2"],
      ["a1"],
    ]);
    expect(await pagesOf(appOf(), { ...list, descending: false, limit: 3 })).toEqual([
      ["a1", "a2", "b1"],
      ["b2", "b3"],
    ]);
  });

  test("may begin with a text", async () => {
    const of = { ...list, beginsWith: "b" };
    expect(await pagesOf(appOf(), of)).toEqual([["b1", "b2"], ["b3"]]);
    expect(await pagesOf(appOf(), { ...of, descending: true })).toEqual([["b3", "b2"], ["b1"]]);
    expect(await pagesOf(appOf(), { ...of, beginsWith: "c" })).toEqual([[]]);
  });

  test("are those of the caller's tenant, with and without an index", async () => {
    expect(await pagesOf(appOf(), list, { as: eve })).toEqual([["a1", "a2"], ["a3"]]);
    const owned = { partition: "ann", index: "byOwner", limit: 2 };
    expect(await pagesOf(appOf(), owned, { as: eve })).toEqual([[]]);
  });

  test("of an index have its order, across partitions of the table", async () => {
    const owned = { partition: "ann", index: "byOwner", limit: 2 };
    const all = [
      ["a1", "a2"],
      ["b1", "b2"],
      ["b3", "a1"],
    ];
    expect(await pagesOf(appOf(), owned)).toEqual(all);
    expect(await pagesOf(appOf(), { ...owned, descending: true })).toEqual(
      all.toReversed().map((page) => page.toReversed()),
    );
    expect(await pagesOf(appOf(), { ...owned, beginsWith: "at b" })).toEqual([
      ["b1", "b2"],
      ["b3"],
    ]);
  });

  test("of an index without a sort key have each item once", async () => {
    const open = { partition: "open", index: "byState", limit: 4 };
    const pages = await pagesOf(appOf(), open);
    expect(pages.map(({ length }) => length)).toEqual([4, 2]);
    expect(pages.flat().sort()).toEqual(["a1", "a1", "a2", "b1", "b2", "b3"]);
  });

  test.each([5, 6, 1_000])(
    "end without a cursor when %i items or fewer are left",
    async (limit) => {
      const page = await read(appOf(), { ...list, limit });
      expect(sortKeys(page)).toEqual(["a1", "a2", "b1", "b2", "b3"]);
      expect(page).not.toHaveProperty("cursor");
    },
  );

  test("end without a cursor when the last one is full", async () => {
    expect(await pagesOf(appOf(), { ...list, beginsWith: "a", limit: 1 })).toEqual([
      ["a1"],
      ["a2"],
    ]);
    expect(await pagesOf(appOf(), { ...list, beginsWith: "a" })).toEqual([["a1", "a2"]]);
  });

  test("of a table whose sort key starts with the tenant may begin with a text too", async () => {
    const by = { table: "turned" } as const;
    expect(await pagesOf(appOf(), { ...list, limit: 1, beginsWith: "a" }, by)).toEqual([
      ["acme/a1"],
      ["acme/a2"],
    ]);
    const inverted = { partition: "a1", index: "bySort", limit: 1 };
    expect(await pagesOf(appOf(), inverted, by)).toEqual([["acme/a1"]]);
    expect(await pagesOf(appOf(), { ...inverted, beginsWith: "li" }, by)).toEqual([["acme/a1"]]);
    expect(await pagesOf(appOf(), { ...inverted, beginsWith: "other" }, by)).toEqual([[]]);
  });

  test("of a table without a sort key are one page with one item", async () => {
    const page = await read(appOf(), { partition: "one", limit: 1 }, { table: "single" });
    expect(page).toEqual({ items: [{ pk: "acme/one", text: "hi" }] });
    const none = await read(appOf(), { partition: "two", limit: 1 }, { table: "single" });
    expect(none).toEqual({ items: [] });
  });

  test("of a table without tenants are the same for every caller", async () => {
    for (const as of [ann, eve, null])
      expect(await pagesOf(appOf(), list, { table: "shared", as })).toEqual([["a1", "a2"], ["a3"]]);
    const owned = { partition: "ann", index: "byOwner", limit: 2 };
    expect(await pagesOf(appOf(), owned, { table: "shared" })).toEqual([["a1", "a2"], ["a3"]]);
  });

  test("of another tenant are for those who may cross tenants", async () => {
    const input = { table: "files" as const, options: list, across: "evil" };
    const as = { id: "root", tenantId: "acme", roles: ["systemAdmin"] };
    const { items, cursor = "" } = await appOf().call(shelf.read, input, { as });
    expect(items.map(({ pk, sk }) => [pk, sk])).toEqual([
      ["evil/list", "a1"],
      ["evil/list", "a2"],
    ]);
    const next = await appOf().call(shelf.read, { ...input, options: { ...list, cursor } }, { as });
    expect(sortKeys(next)).toEqual(["a3"]);
    await expect(appOf().call(shelf.read, input, { as: ann })).rejects.toMatchObject({
      status: 403,
    });
  });

  const notOurs = {
    status: 422,
    fields: [{ field: "cursor", error: "must be one that this list has given" }],
  };
  const refuses = async (options: Options, by: Parameters<typeof read>[2] = {}) => {
    const error = await read(appOf(), options, by).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ValidationError);
    expect(error).toMatchObject(notOurs);
  };

  test.each<[string, Options, Parameters<typeof read>[2], Parameters<typeof read>[2]]>([
    ["tenant", list, {}, { as: eve }],
    ["tenant, in a table without tenants", list, { table: "shared" }, { table: "shared", as: eve }],
    ["tenant than none", list, { table: "shared" }, { table: "shared", as: null }],
    ["table", list, {}, { table: "copies" }],
    ["table without tenants", list, { table: "shared" }, { table: "others" }],
  ])("refuse a cursor of another %s", async (_what, options, from, to) => {
    const cursor = await cursorOf(appOf(), options, from);
    await refuses({ ...options, cursor }, to);
  });

  test.each<[string, Options, Options]>([
    ["partition", list, { ...list, partition: "other" }],
    ["index", list, { ...list, partition: "ann", index: "byOwner" }],
    ["index", { partition: "ann", index: "byOwner", limit: 2 }, list],
    ["index", { partition: "open", index: "byState", limit: 2 }, { ...list, partition: "open" }],
    ["beginning", list, { ...list, beginsWith: "a" }],
    ["beginning", { ...list, beginsWith: "b" }, { ...list, beginsWith: "a" }],
    ["beginning than none", { ...list, beginsWith: "b" }, list],
    ["direction", list, { ...list, descending: true }],
    ["direction than the last", { ...list, descending: true }, list],
  ])("refuse a cursor of another %s", async (_what, from, to) => {
    await refuses({ ...to, cursor: await cursorOf(appOf(), from) });
  });

  test("take a cursor with another limit", async () => {
    const cursor = await cursorOf(appOf(), list);
    expect(sortKeys(await read(appOf(), { ...list, limit: 10, cursor }))).toEqual([
      "b1",
      "b2",
      "b3",
    ]);
  });

  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

  test.each<[string, unknown]>([
    ["an empty text", ""],
    ["a text", "next"],
    ["characters of no cursor", "a+b/c="],
    ["JSON of another form", encoded({ pk: "acme/list" })],
    ["an empty list", encoded([])],
    ["a list of numbers", encoded([1, 2])],
    ["a list of other texts", encoded(["a", '["a1"]'])],
    ["an encrypted one that nobody encrypted", encoded(["k1", "AAAA", "sealed"])],
    ["one of a key that nobody has", encoded(["k9", "AAAA", "sealed"])],
    ["half a character", Buffer.from([0xff, 0xfe]).toString("base64url")],
    ["20,001 characters", "a".repeat(20_001)],
    ["a megabyte", "a".repeat(1_000_000)],
    ["a number", 7],
    ["null", null],
    ["a list", [1]],
    ["an object", {}],
  ])("refuse a cursor that is %s", async (_what, cursor) => {
    await refuses({ ...list, cursor });
    await refuses({ partition: "one", limit: 1, cursor }, { table: "single" });
  });

  test("refuse a cursor of which any part has changed", async () => {
    const cursor = await cursorOf(appOf(), list);
    await refuses({ ...list, cursor: cursor.slice(0, -4) });
    await refuses({ ...list, cursor: `${cursor}AAAA` });
    const parts: string[] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    for (const [at, part] of parts.entries()) {
      const changed = part.startsWith("A") ? `B${part.slice(1)}` : `A${part.slice(1)}`;
      await refuses({ ...list, cursor: encoded(parts.with(at, changed)) });
    }
    await refuses({ ...list, cursor: encoded([...parts, "more"].slice(1)) });
  });

  test("answer a wrong cursor with 422 that names it, and log no error", async () => {
    const cursor = await cursorOf(appOf(), list);
    const answer = await appOf().fetch(`/pages?cursor=${cursor}`, { as: ann });
    expect([answer.status, sortKeys((await answer.json()) as TablePage)]).toEqual([
      200,
      ["b1", "b2"],
    ]);

    const before = appOf().logs.length;
    for (const [wrong, as] of [
      ["nonsense", ann],
      [cursor, eve],
    ] as const) {
      const refused = await appOf().fetch(`/pages?cursor=${wrong}`, { as });
      expect(refused.status).toBe(422);
      expect(await refused.json()).toMatchObject({
        error: "validation_error",
        fields: notOurs.fields,
      });
    }
    const levels = appOf()
      .logs.slice(before)
      .map(({ level }) => level);
    expect(levels).not.toContain("error");
  });
});

describe("the cursor of a server", () => {
  const list = { partition: "list", limit: 2 };
  const decoded = (cursor: string) => Buffer.from(cursor, "base64url").toString("latin1");

  test("with a key ring shows no attribute", async () => {
    for (const options of [list, { partition: "ann", index: "byOwner", limit: 2 }]) {
      const text = decoded(await cursorOf(sealing, options));
      const [key, data = "", kind] = JSON.parse(text);
      expect([key, kind]).toEqual(["k1", "sealed"]);
      const raw = Buffer.from(data, "base64url").toString("latin1");
      // With their quotes: a random text has two or three given letters now and then.
      for (const shown of ["acme", "list", '"a2"', 'a2\\"', '"ann"', 'ann\\"', "at a2"])
        expect([text.includes(shown), raw.includes(shown)]).toEqual([false, false]);
    }
  });

  test("with a key ring differs each time", async () => {
    const cursors = [await cursorOf(sealing, list), await cursorOf(sealing, list)];
    expect(new Set(cursors).size).toBe(2);
    for (const cursor of cursors)
      expect(sortKeys(await read(sealing, { ...list, cursor }))).toEqual(["b1", "b2"]);
  });

  test("without one takes no other position", async () => {
    const [proof, position] = JSON.parse(decoded(await cursorOf(plain, list)));
    expect(position).toBe('["a2"]');
    for (const changed of ['["b2"]', '["a2","a2"]', "[]", "[7]", "a2"]) {
      const cursor = Buffer.from(JSON.stringify([proof, changed])).toString("base64url");
      await expect(read(plain, { ...list, cursor })).rejects.toMatchObject({ status: 422 });
    }
  });

  test.each([
    ["a row of another tenant", ["at a1", "evil/list", "a1"]],
    ["a tenant whose name starts like the caller's", ["at a1", "acmes/list", "a1"]],
    ["an empty value", ["at a1", "acme/list", ""]],
    ["a partition key that is too long", ["at a1", `acme/${"é".repeat(1_022)}`, "a1"]],
    ["a sort key that is too long", ["at a1", "acme/list", "a".repeat(1_025)]],
  ])(
    "without one that a client forges, with %s, is a 422 without an alarm",
    async (_what, position) => {
      const cursor = forged(position);
      const before = plain.logs.length;
      await expect(
        read(plain, { index: "byOwner", partition: "ann", limit: 2, cursor }),
      ).rejects.toMatchObject({ status: 422 });
      expect(plain.logs.slice(before).map(({ level }) => level)).not.toContain("error");
    },
  );

  test("without one takes a forged position among the caller's own rows", async () => {
    const cursor = forged(["at a1", "acme/list", "a1"]);
    const page = await read(plain, { index: "byOwner", partition: "ann", limit: 2, cursor });
    expect(sortKeys(page)).toEqual(["a2", "b1"]);
  });

  test("is none of a server that does it the other way", async () => {
    for (const [from, to] of [
      [plain, sealing],
      [sealing, plain],
    ] as const) {
      const cursor = await cursorOf(from, list);
      await expect(read(to, { ...list, cursor })).rejects.toMatchObject({ status: 422 });
    }
  });
});

/** A cursor of a server without a key ring, at a position that its client has chosen. */
function forged(position: readonly string[]): string {
  const text = JSON.stringify(position);
  const place = ["keelson.cursor", "files", "byOwner", "=acme", "acme/ann", "", "ascending"];
  const proof = createHash("sha256")
    .update(JSON.stringify([place, text]))
    .digest("base64url");
  return Buffer.from(JSON.stringify([proof.slice(0, 22), text])).toString("base64url");
}

const what = 'table "files": page:';
test.each<[Record<string, unknown>, ErrorConstructor, string]>([
  [{ limit: 0 }, RangeError, `${what} the limit is 0; use 1 to 1000`],
  [{ limit: -1 }, RangeError, "the limit is -1"],
  [{ limit: 1.5 }, RangeError, "the limit is 1.5"],
  [{ limit: 1_001 }, RangeError, "the limit is 1001"],
  [{ limit: Number.NaN }, RangeError, "the limit is NaN"],
  [{ limit: "10" }, RangeError, 'the limit is "10"'],
  [{ limit: undefined }, RangeError, "the limit is undefined"],
  [{ limit: null }, RangeError, "the limit is null"],
  [{ limits: 10 }, TypeError, `${what} unknown option "limits"; did you mean \`limit\`? known are`],
  [{ partition: undefined }, TypeError, `${what} the partition is undefined, not a string`],
  [{ partition: 7 }, TypeError, "the partition is 7, not a string"],
  [{ partition: Promise.resolve("list") }, TypeError, "the partition is an object, not a string"],
  [{ index: "byOther" }, TypeError, `${what} no index "byOther"`],
  [{ index: 7 }, TypeError, `${what} no index 7`],
  [{ beginsWith: 7 }, TypeError, `${what} beginsWith takes a string`],
  [{ index: "byState", beginsWith: "a" }, TypeError, "and a table or an index with a sort key"],
])("a page with the options %j is refused", async (options, kind, message) => {
  const error = await readPage(parts, { user: ann, db: unused }, {
    partition: "list",
    limit: 2,
    ...options,
  } as PageOptions).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject({ message: expect.stringContaining(message) });
});

test("a page of a table without a sort key begins with nothing", async () => {
  const refused = read(plain, { partition: "one", beginsWith: "a", limit: 1 }, { table: "single" });
  await expect(refused).rejects.toThrow('table "single": page: beginsWith takes a string');
});

test("a page of a table with tenants needs a tenant", async () => {
  const refused = readPage(parts, { user: { tenantId: undefined }, db: unused }, of);
  await expect(refused).rejects.toThrow('table "files": value: the run has no tenant');
});

// Without a key ring, a client can compute a cursor's proof.
test.each([
  ["is not a string", [7]],
  ["lies outside the beginning", ["b1"]],
])("a forged cursor whose position %s is refused", async (_what, position) => {
  const place = ["keelson.cursor", "files", "", "=acme", "acme/list", "a", "ascending"];
  const text = JSON.stringify(position);
  const proof = createHash("sha256")
    .update(JSON.stringify([place, text]))
    .digest("base64url");
  const cursor = Buffer.from(JSON.stringify([proof.slice(0, 22), text])).toString("base64url");
  const options = { partition: "list", beginsWith: "a", limit: 2, cursor };
  await expect(readPage(parts, { user: ann, db: unused }, options)).rejects.toMatchObject({
    fields: [{ field: "cursor" }],
  });
});

test("there is no page outside a handler", async () => {
  const refused = shelf.tables.files.page({ user: ann, db: unused }, of);
  await expect(refused).rejects.toThrow(
    'table "files": its physical name is known only while a handler runs',
  );
});

const declaration: TableDeclaration = {
  name: "files",
  partitionKey: "pk",
  sortKey: "sk",
  tenant: true,
  indexes: [
    { name: "byOwner", partitionKey: "owner", sortKey: "at", project: undefined },
    { name: "byState", partitionKey: "state", sortKey: undefined, project: undefined },
  ],
} as TableDeclaration;
const parts = {
  table: declaration,
  physicalName: "app-files",
  secrets: createSecrets({ clock: { now: () => 0 } }),
};
const unused = { send: () => expect.unreachable() } as unknown as Database;
const of = { partition: "list", limit: 2 };

/** Pages of rows that DynamoDB returns one by one. */
function stingy(sortKeyed: readonly string[]) {
  const inputs: Record<string, unknown>[] = [];
  const send = vi.fn(async ({ input }: { readonly input: Record<string, unknown> }) => {
    inputs.push(input);
    const sk = sortKeyed[inputs.length - 1];
    const key = { pk: "acme/list", sk };
    const isLast = inputs.length >= sortKeyed.length;
    return {
      Items: sk === undefined ? undefined : [key],
      ...(!isLast && { LastEvaluatedKey: key }),
    };
  });
  const ctx = { user: ann, db: { send } as unknown as Database }; // safe: a page sends nothing else
  return { ctx, inputs };
}

test("a page has a cursor while SSM fails, because a cursor is not stored", async () => {
  const ring = parseKeyRing(JSON.stringify({ active: "k1", keys: { k1: newRingKey() } }));
  const load = vi.fn(() => Promise.reject(new Error("SSM is down")));
  const clock = { now: () => 10_000 };
  const secrets = createSecrets({ load, clock });
  secrets.begin(ring, 0);
  const { ctx } = stingy(["a", "b", "c"]);
  const { cursor } = await readPage({ ...parts, secrets }, ctx, of);
  expect(cursor).toEqual(expect.any(String));
  expect(load).not.toHaveBeenCalled();
  clock.now = () => 300_000;
  const late = await readPage({ ...parts, secrets }, stingy(["a", "b", "c"]).ctx, of);
  expect(late.cursor).toEqual(expect.any(String));
  expect(load).toHaveBeenCalledOnce();
});

describe("DynamoDB", () => {
  test("is asked again until the page is full, for what it lacks", async () => {
    const { ctx, inputs } = stingy(["a", "b", "c", "d"]);
    const { items, cursor } = await readPage(parts, ctx, of);
    expect(items.map(({ sk }) => sk)).toEqual(["a", "b"]);
    expect(cursor).toEqual(expect.any(String));
    expect(inputs.map(({ Limit, ExclusiveStartKey }) => [Limit, ExclusiveStartKey])).toEqual([
      [3, undefined],
      [2, { pk: "acme/list", sk: "a" }],
      [1, { pk: "acme/list", sk: "b" }],
    ]);
  });

  test("may end with a page that it has not filled, or with no item", async () => {
    const { ctx } = stingy(["a", "b"]);
    expect(await readPage(parts, ctx, of)).toEqual({
      items: [
        { pk: "acme/list", sk: "a" },
        { pk: "acme/list", sk: "b" },
      ],
    });
    expect(await readPage(parts, stingy([]).ctx, of)).toEqual({ items: [] });
  });

  test("reads the table as it is now, and an index as it was", async () => {
    const { ctx, inputs } = stingy([]);
    await readPage(parts, ctx, { ...of, beginsWith: "a", descending: true });
    await readPage(parts, ctx, { ...of, partition: "ann", index: "byOwner" });
    expect(inputs).toEqual([
      {
        TableName: "app-files",
        KeyConditionExpression: "#p = :p AND begins_with(#s, :s)",
        ExpressionAttributeNames: { "#p": "pk", "#s": "sk" },
        ExpressionAttributeValues: { ":p": "acme/list", ":s": "a" },
        ScanIndexForward: false,
        Limit: 3,
        ConsistentRead: true,
      },
      {
        TableName: "app-files",
        IndexName: "byOwner",
        KeyConditionExpression: "#p = :p",
        ExpressionAttributeNames: { "#p": "owner" },
        ExpressionAttributeValues: { ":p": "acme/ann" },
        ScanIndexForward: true,
        Limit: 3,
        ConsistentRead: false,
      },
    ]);
  });
});
