import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { asideItem } from "../../../aws/stores/aside-store.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";

declare module "../../../base/types/names.ts" {
  interface Events {
    "acorn.fell": { name: string };
  }
}

let heard: string[] = [];
const acorns = defineFeature("acorns", (r) => {
  r.event("acorn.fell", z.object({ name: z.string() }));
  r.on("acorn.fell", {
    name: "hear",
    handler: async (_ctx, { payload }) => void heard.push(payload.name),
  });
});

let app: TestApp;
const table = "keelson-outbox";

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [acorns], log: { level: "error" } }));
  await app.settled(); // makes bus and queues
});
afterAll(() => app.close());
beforeEach(() => {
  heard = [];
});

const run = (args: string, env: Readonly<Record<string, string | undefined>> = app.env) =>
  ranCommand(["outbox", ...args.split(" ").filter(Boolean)], {
    env,
    clock: app.clock,
    wait: async () => undefined,
  });

const idOf = (number: number) => `0000000${number}-0000-8000-8000-000000000000`;

async function store(Item: Readonly<Record<string, unknown>>): Promise<void> {
  const { db } = await app.ctx({ id: "ann", tenantId: "acme" });
  await db.send(new PutCommand({ TableName: table, Item }));
}

/** Sets an event aside, as a sweep does. */
async function aside(number: number, name: string): Promise<void> {
  const [eventId, type, requestId] = [idOf(number), "acorn.fell", "r1"];
  const payload = { name, requestId };
  const text = JSON.stringify({
    kind: "shared",
    type,
    eventId,
    payload,
    causedBy: "r1",
    origRequestId: "r1",
  });
  const row = {
    shard: `shard#${number}`,
    sort: `00000000000100${number}#${eventId}`,
    eventId,
    type,
    text,
  };
  await store(asideItem(row, "MalformedDetail Detail is malformed.", 1_700_000_000_000));
}

describe("keelson outbox", () => {
  test("reports that no message is set aside", async () => {
    const message = `keelson: no message is set aside in ${table}`;
    expect(await run("list --json")).toEqual({ code: 0, out: [], err: message });
    expect(await run("put-back")).toEqual({ code: 0, out: [], err: message });
    expect(await run("list --event e1")).toMatchObject({
      code: 0,
      err: `keelson: no message "e1" is set aside in ${table}`,
    });
    expect(await run("remove --event e1")).toEqual({
      code: 1,
      out: [],
      err: `keelson: no message "e1" is set aside in ${table}`,
    });
  });

  test("lists the events set aside, puts some back to be dispatched, and removes one", async () => {
    for (const [number, name] of ["a", "b", "c"].entries()) await aside(number, name);
    const { code, out } = await run("list --json");
    expect([code, out.map((line) => JSON.parse(line))]).toEqual([
      0,
      [0, 1, 2].map((number) => ({
        setAsideAt: "2023-11-14T22:13:20.000Z",
        reason: "MalformedDetail Detail is malformed.",
        type: "acorn.fell",
        eventId: idOf(number),
        key: `00000000000100${number}#${idOf(number)}#shard#${number}`,
      })),
    ]);
    expect(await run(`remove --event ${idOf(1)}`)).toEqual({
      code: 0,
      out: [`"acorn.fell" "${idOf(1)}": removed`],
      err: "",
    });
    expect((await run(`put-back --event ${idOf(2)}`)).out).toEqual([
      `"acorn.fell" "${idOf(2)}": put back`,
    ]);
    expect((await run("put-back")).out).toEqual([`"acorn.fell" "${idOf(0)}": put back`]);
    expect((await run("list --json")).out).toEqual([]);
    await app.settled();
    expect(heard.sort()).toEqual(["a", "c"]);
  });

  test("prints no control characters of a row, and the JSON still parses to the original", async () => {
    const hostile = "a\u009b2J\u202e\u001b]0;x\u0007\nb\u2066";
    const row = {
      shard: "shard#4",
      sort: "000000000001004#e",
      eventId: `e${hostile}`,
      type: hostile,
      text: "",
    };
    await store(asideItem(row, hostile, 0));
    const [listed = ""] = (await run("list --json")).out;
    expect(JSON.parse(listed)).toMatchObject({
      type: hostile,
      eventId: `e${hostile}`,
      reason: hostile,
    });
    const { out } = await run(`remove --event e${hostile}`);
    const { err } = await run(`remove --event e${hostile}`);
    for (const line of [listed, ...out, err]) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e\u2066]/);
    }
    expect(out).toHaveLength(1);
  });

  test("goes on if somebody else has put one back in the meantime", async () => {
    for (const number of [6, 7, 8]) await aside(number, `${number}`);
    const runs = await Promise.all([run("put-back"), run("put-back")]);
    expect(runs.map(({ code, err }) => [code, err.includes("ConditionalCheck")])).toEqual([
      [0, false],
      [0, false],
    ]);
    const lines = runs.flatMap(({ out }) => out).filter((line) => line.endsWith(": put back"));
    expect(lines).toHaveLength(3);
  });

  test("finds an unreadable row by its event ID, and puts back only rows that were set aside", async () => {
    const row = {
      shard: "shard#3",
      sort: "000000000001003#odd",
      eventId: "odd",
      type: "unknown",
      text: "",
      unreadable: { x: 1 },
    };
    await store(asideItem(row, "no event", 0));
    await store({ pk: "aside", sk: "! of somebody else" });
    await aside(5, "f");
    expect((await run("put-back --event odd")).out).toEqual(['"unknown" "odd": put back']);
    expect(await run("put-back")).toEqual({
      code: 1,
      out: [`"acorn.fell" "${idOf(5)}": put back`],
      err: `keelson: "! of somebody else" does not name its shard, and stays; keelson did not write this row of ${table}, so delete it there`,
    });
    // The odd one is set aside again; a test app says so.
    await expect(app.settled()).rejects.toThrow("1 events were set aside");
    expect((await run("remove --event odd")).code).toBe(0);
  });

  test("reads all pages", async () => {
    for (let number = 0; number < 5; number += 1) {
      await store({
        pk: "aside",
        sk: `big ${number}`,
        eventId: "big",
        envelope: "x".repeat(300_000),
      });
    }
    expect((await run("list --json --event big")).out).toHaveLength(5);
    expect((await run("remove --event big")).out).toHaveLength(5);
  });

  test.each([
    ["", "no action is given"],
    ["polish", 'there is no action "polish"'],
    ["put-back --json", "--json is an option of list"],
    ["list more", 'unexpected argument "more"'],
    ["remove", "--event is missing; use --event <id>"],
    ["put-back --event=", "--event is empty; use --event <id>"],
    ["list --all", "there is no option --all"],
  ])("%j exits with 2 and explains the mistake", async (args, why) => {
    const { code, err } = await run(args);
    expect(code).toBe(2);
    expect(err).toContain(`keelson: ${why}`);
    expect(err).toContain("Run `keelson outbox --help`.");
  });

  test("prints its help, and explains why the table cannot be read", async () => {
    expect((await run("--help")).out[0]).toContain("Usage: keelson outbox");
    const { code, err } = await run("list", { ...app.env, KEELSON_TABLE_OUTBOX: "nowhere" });
    expect([code, err]).toEqual([1, expect.stringContaining("a table does not exist")]);
  });
});
