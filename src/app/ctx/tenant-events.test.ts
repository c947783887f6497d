import { GetCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { openDatabase } from "../../aws/clients/dynamodb.ts";
import { access } from "../../base/identity/access.ts";
import type { Database } from "../../base/types/database.ts";
import type { KeptEvent } from "../../parts/messages/kept-events.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { buildServer } from "../server/server.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "page.written": { n: number };
    "page.read": { n: number };
    "page.lost": { n: number };
  }
}

let work: (ctx: PipelineContext) => unknown = () => undefined;
const payload = z.object({ n: z.number() });
const book = defineFeature("book", (r) => {
  const table = r.table("book", { partitionKey: "pk", tenant: false });
  r.event("page.written", payload, { keep: true });
  r.event("page.read", payload, { keepDays: 2 });
  r.event("page.lost", payload);
  r.on("page.written", {
    name: "copy",
    handler: async (ctx, event) => ctx.publish("page.read", { n: event.payload.n }),
  });
  r.write("page.do", {
    route: "POST /do",
    access: access.everyone,
    handler: async (ctx) => work(ctx),
  });
  r.write("page.commit", {
    route: "POST /commit",
    access: access.everyone,
    input: z.object({ n: z.number(), items: z.number().default(1) }),
    handler: async (ctx, { n, items }) => {
      await ctx.publish("page.written", { n });
      const rows = Array.from({ length: items }, (_, at) => ({
        Put: { TableName: table.name, Item: { pk: `${n}#${at}` } },
      }));
      return ctx.commit(rows, { n });
    },
  });
});
const server = buildServer({ features: [book] });
const ann = { id: "ann", tenantId: "acme" };
const dayMs = 86_400_000;

let app: TestApp;
let database: Database;
beforeAll(async () => {
  app = await startTestApp(server);
  database = await openDatabase({
    endpoint: app.env["AWS_ENDPOINT_URL"],
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
});
afterAll(async () => {
  database.destroy();
  await app.close();
});

const TableName = "keelson-kept-events";
let tenant = "";
let count = 0;
beforeEach(() => {
  count += 1;
  tenant = `t${count}`;
});
const as = (id = "ann") => ({ id, tenantId: tenant });
const write = (n: number, headers: Record<string, string> = {}) =>
  app.fetch("/commit", {
    body: { n },
    as: as(),
    headers: { "idempotency-key": crypto.randomUUID(), ...headers },
  });
async function read(
  range: object = {},
  type = "page.written",
  reader: object = as(),
): Promise<KeptEvent[]> {
  const found: KeptEvent[] = [];
  const ctx = await app.ctx(reader as never);
  for await (const event of ctx.events(type as never, range)) found.push(event);
  return found;
}
const numbers = (events: readonly KeptEvent[]) =>
  events.map((event) => (event.payload as { n: number }).n);

describe("a kept event", () => {
  test("can be read by its tenant alone once committed, in the form its consumers get", async () => {
    expect((await write(1, { "x-request-id": "r-1" })).status).toBe(200);
    const [event, ...more] = await read();
    expect(more).toEqual([]);
    expect(Math.abs(Number(event?.keptAt) - app.clock.now())).toBeLessThan(60_000);
    expect(event).toEqual({
      kind: "shared",
      type: "page.written",
      eventId: app.events.at(-1)?.eventId,
      payload: { n: 1 },
      causedBy: "r-1",
      origRequestId: "r-1",
      tenantId: tenant,
      userId: "ann",
      keptAt: expect.any(Date),
    });
    expect(await read({}, "page.written", { id: "eve", tenantId: "evil" })).toEqual([]);
    expect(await read({}, "page.read")).toEqual([]);
  });

  test("is stored in a partition of its tenant, type and day, with an optional time to live", async () => {
    await write(1);
    await app.settled();
    const { Items = [] } = await database.send(new ScanCommand({ TableName }));
    const own = Items.filter(({ pk }) => String(pk).startsWith(`${tenant}/`));
    const day = new Date(app.clock.now()).toISOString().slice(0, 10);
    expect(
      own
        .map(({ pk, sk }) => `${pk} ${String(sk).replace(/^\d{15}#[0-9a-f-]{36}$/, "(place)")}`)
        .sort(),
    ).toEqual([
      `${tenant}/days/page.read ${day}`,
      `${tenant}/days/page.read first`,
      `${tenant}/days/page.written ${day}`,
      `${tenant}/days/page.written first`,
      `${tenant}/event/page.read/${day} (place)`,
      `${tenant}/event/page.written/${day} (place)`,
    ]);
    const expirations = Object.fromEntries(
      own.map(({ pk, sk, expiration }) => [`${pk} ${String(sk).slice(0, 3)}`, expiration]),
    );
    const at = Math.ceil(app.clock.now() / 1_000);
    expect(expirations[`${tenant}/event/page.written/${day} 001`]).toBeUndefined();
    expect(
      Math.abs(Number(expirations[`${tenant}/event/page.read/${day} 001`]) - at - 2 * 86_400),
    ).toBeLessThan(60);
  });

  test("is not kept when its handler drops it", async () => {
    work = async (ctx) => {
      await ctx.publish("page.written", { n: 1 });
      throw new Error("no");
    };
    expect((await app.fetch("/do", { body: {}, as: as() })).status).toBe(500);
    expect(await read()).toEqual([]);
  });

  test("is kept although its handler throws, with `afterCommit: false`", async () => {
    work = async (ctx) => {
      await ctx.publish("page.written", { n: 7 }, { afterCommit: false });
      throw new Error("no");
    };
    expect((await app.fetch("/do", { body: {}, as: as() })).status).toBe(500);
    expect(numbers(await read())).toEqual([7]);
    expect(app.events.at(-1)?.eventId).toBe((await read())[0]?.eventId);
  });

  test("is kept with the result of a write that commits nothing, and with an answer that is never stored", async () => {
    work = (ctx) => ctx.publish("page.written", { n: 3 });
    expect((await app.fetch("/do", { body: {}, as: as() })).status).toBe(204);
    expect(numbers(await read())).toEqual([3]);
  });

  test("without a tenant is stored outside every tenant's partitions", async () => {
    work = (ctx) => ctx.publish("page.written", { n: 4 });
    expect((await app.fetch("/do", { body: {} })).status).toBe(204);
    const { Items = [] } = await database.send(new ScanCommand({ TableName }));
    const day = new Date(app.clock.now()).toISOString().slice(0, 10);
    expect(Items.filter(({ pk }) => String(pk) === `/event/page.written/${day}`)).toHaveLength(1);
  });

  test("takes two items of its commit, which count when a too large commit is refused", async () => {
    const commit = (items: number) =>
      app.fetch("/commit", {
        body: { n: 1, items },
        as: as(),
        headers: { "x-request-id": `i${items}-${tenant}` },
      });
    expect((await commit(97)).status).toBe(200);
    expect((await commit(98)).status).toBe(500);
    const line = app.logs.filter(({ msg }) => msg === "request.failed").at(-1);
    expect(line?.["message"]).toMatch("98 items and 3 of keelson's own are more than the 100");
    expect(numbers(await read())).toEqual([1]);
  });

  test("gets a new ID when a client reuses its key after the claim has expired", async () => {
    await write(1, { "idempotency-key": "same" });
    app.clock.advance(400_000);
    await write(1, { "idempotency-key": "same" });
    const events = await read();
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(2);
  });

  test("keeps its ID when its consumer runs again", async () => {
    await write(1);
    await app.settled();
    const [first] = await read();
    app.clock.advance(dayMs + 2 * 3_600_000);
    if (first === undefined) throw new Error("no event");
    const { keptAt: _at, ...message } = first;
    expect(await app.deliver(message)).toBe("processed");
    const copies = await read({}, "page.read");
    expect(copies.map(({ eventId }) => eventId)).toEqual([copies[0]?.eventId, copies[0]?.eventId]);
  });
});

describe("ctx.events", () => {
  test("reads in chronological order, across days with and without events", async () => {
    for (const [n, afterMs] of [
      [1, 0],
      [2, 5],
      [3, 400 * dayMs],
      [4, dayMs],
    ] as const) {
      app.clock.advance(afterMs);
      await write(n);
    }
    const before = { ...app.calls };
    expect(numbers(await read())).toEqual([1, 2, 3, 4]);
    // One for the list of days, one for each of the three that have events.
    expect((app.calls["Query"] ?? 0) - (before["Query"] ?? 0)).toBe(4);
  });

  test("reads from one time to another, up to the requested limit", async () => {
    for (const n of [1, 2, 3, 4]) {
      await write(n);
      app.clock.advance(dayMs / 2);
    }
    const times = (await read()).map(({ keptAt }) => keptAt);
    const [, since, , until] = times;
    expect(numbers(await read({ since }))).toEqual([2, 3, 4]);
    expect(numbers(await read({ until }))).toEqual([1, 2, 3]);
    expect(numbers(await read({ since, until }))).toEqual([2, 3]);
    expect(numbers(await read({ since, limit: 1 }))).toEqual([2]);
    expect(numbers(await read({ limit: 0 }))).toEqual([]);
    expect(numbers(await read({ since: until, until: since }))).toEqual([]);
    expect(numbers(await read({ since: new Date(Number(since) + 1), until: since }))).toEqual([]);
  });

  test("leaves out expired events that are not deleted yet", async () => {
    work = (ctx) => ctx.publish("page.read", { n: 1 });
    await app.fetch("/do", { body: {}, as: as() });
    app.clock.advance(2 * dayMs - 1_000);
    expect(numbers(await read({}, "page.read"))).toEqual([1]);
    app.clock.advance(2_000);
    expect(await read({}, "page.read")).toEqual([]);
  });

  test("reads in pages: neither a day of many events nor years of days at once", async () => {
    const day = new Date(app.clock.now()).toISOString().slice(0, 10);
    const at = app.clock.now();
    const put = (pk: string, sk: string, more = {}) =>
      database.send(new PutCommand({ TableName, Item: { pk, sk, ...more } }));
    const event = (n: number) =>
      JSON.stringify({
        kind: "shared",
        type: "page.written",
        eventId: `e${n}`,
        payload: { n },
        causedBy: "c",
        origRequestId: "c",
        tenantId: tenant,
      });
    await put(`${tenant}/days/page.written`, day);
    for (let n = 0; n < 101; n += 1) {
      await put(
        `${tenant}/event/page.written/${day}`,
        `${String(at).padStart(15, "0")}#e${String(n).padStart(3, "0")}`,
        {
          event: event(n),
        },
      );
    }
    const before = app.calls["Query"] ?? 0;
    expect(numbers(await read({ limit: 100 }))).toHaveLength(100);
    expect((app.calls["Query"] ?? 0) - before).toBe(2);
    expect(numbers(await read())).toHaveLength(101);
    expect((app.calls["Query"] ?? 0) - before).toBe(5);
  });

  test("stops at the signal, before the next event and before the next page", async () => {
    for (const n of [1, 2]) await write(n);
    const stop = new AbortController();
    const seen: number[] = [];
    let ended: unknown;
    work = async (ctx) => {
      try {
        for await (const event of ctx.events("page.written")) {
          seen.push(event.payload.n);
          stop.abort();
          await new Promise((resolve) => ctx.signal?.addEventListener("abort", resolve));
        }
      } catch (error) {
        ended = error;
      }
    };
    await expect(app.fetch("/do", { body: {}, as: as(), signal: stop.signal })).rejects.toThrow();
    await expect
      .poll(() => ended)
      .toMatchObject({ name: "AbortError", message: "The client has gone" });
    expect(seen).toEqual([1]);
  });

  test.each([
    ["page.lost", {}, ann, /no feature of this server keeps the event page.lost/],
    ["page.gone", {}, ann, /no feature of this server keeps the event page.gone/],
    ["page.written", {}, { id: undefined, tenantId: undefined }, /the run has no tenant/],
    ["page.written", { limit: 1.5 }, ann, /`limit` is 1.5; pass a whole number/],
    ["page.written", { limit: -1 }, ann, /`limit` is -1/],
    [
      "page.written",
      { from: new Date(0) },
      ann,
      /unknown option "from"; known are since, until, limit/,
    ],
    ["page.written", 7, ann, /the options are 7; pass an object with since, until, limit/],
    ["page.written", null, ann, /the options are null/],
    ["page.written", [new Date(0)], ann, /pass an object/],
    ["page.written", { since: "yesterday" }, ann, /`since` is "yesterday"; pass a valid Date/],
    ["page.written", { until: new Date("x") }, ann, /`until` is an object; pass a valid Date/],
  ])(
    "refuses to read %s with %j as %j when the first event is requested",
    async (type, range, reader, message) => {
      await expect(read(range as object, type, reader)).rejects.toThrow(message);
    },
  );

  test("refuses and names an event that no longer fits its schema", async () => {
    await write(1);
    const [event] = await read();
    const { Items = [] } = await database.send(new ScanCommand({ TableName }));
    const row = Items.find(({ pk }) => String(pk).startsWith(`${tenant}/event/`));
    await database.send(
      new PutCommand({
        TableName,
        Item: { ...row, event: String(row?.["event"]).replace('"n":1', '"n":"one"') },
      }),
    );
    await expect(read()).rejects.toThrow(
      `the payload of page.written ${event?.eventId} does not fit its schema any more (n: `,
    );
  });
});

describe("a day with events", () => {
  const first = () =>
    database.send(
      new GetCommand({ TableName, Key: { pk: `${tenant}/days/page.written`, sk: "first" } }),
    );

  test("is recorded once in ten minutes, however many events are published", async () => {
    app.clock.advance(dayMs - (app.clock.now() % dayMs)); // the ten minutes are of one day
    const puts = () => (app.calls["PutItem"] ?? 0) + (app.calls["BatchGetItem"] ?? 0);
    const writeAndConsume = async (n: number) => {
      await write(n);
      await app.settled();
    };
    await writeAndConsume(1);
    const before = puts();
    await writeAndConsume(2);
    const claims = puts() - before; // what a write and its consumer cost without noting a day
    await writeAndConsume(3);
    expect(puts() - before).toBe(2 * claims);
    app.clock.advance(600_000);
    await writeAndConsume(4);
    expect(puts() - before).toBe(3 * claims + 2); // both look, and find it noted
    expect((await first()).Item).toMatchObject({ tenantId: tenant, type: "page.written" });
  });
});
