import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { runCommand } from "../command.ts";
import { findServer } from "../setup/load-server.ts";
import { command } from "./projection-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const zod = JSON.stringify(import.meta.resolve("zod"));
const moduleOf = (version: number, keep: string) => `
import { buildServer, defineFeature } from ${source};
import { z } from ${zod};
export const server = buildServer({ features: [defineFeature("mugs", (r) => {
  const table = r.table("mugs", { partitionKey: "pk", tenant: true });
  r.event("mug.filled", z.object({ n: z.number() }), ${keep});
  const full = r.projection("mugs.full", { version: ${version}, on: { "mug.filled": async (ctx, { payload }) => [{ Update: {
    TableName: table.name, Key: await table.key(ctx, await full.key(ctx)),
    UpdateExpression: "ADD n :n", ExpressionAttributeValues: { ":n": payload.n } } }] } });
  r.write("mug.fill", { handler: async (ctx, { n }) => ctx.publish("mug.filled", { n }) });
})] });`;

let folder: string;
let app: TestApp;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-projection-"));
  await writeFile(join(folder, "one.mjs"), moduleOf(1, "{ keepDays: 2 }"));
  await writeFile(join(folder, "two.mjs"), moduleOf(2, "{ keepDays: 2 }"));
  await writeFile(join(folder, "three.mjs"), moduleOf(3, "{ keepDays: 2 }"));
  await writeFile(join(folder, "four.mjs"), moduleOf(4, "{ keepDays: 2 }"));
  await writeFile(
    join(folder, "none.mjs"),
    `import { buildServer } from ${source};\nexport const server = buildServer({ features: [] });`,
  );
  app = await startTestApp(await findServer(join(folder, "one.mjs")));
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

const at = (name: string) => join(folder, name);
const run = (args: readonly string[], stopping?: () => AbortSignal) =>
  ranCommand(["projection", ...args], {
    env: app.env,
    clock: app.clock,
    ...(stopping === undefined ? {} : { stopping }),
  });
const fill = (tenantId: string, n: number) =>
  app.call("mugs.mug.fill", { n }, { as: { id: "ann", tenantId } });
const status = async (name: string) =>
  JSON.parse((await run(["status", at(name), "--json"])).out[0] ?? "") as Readonly<
    Record<string, unknown>
  >;

describe("keelson projection", () => {
  test("prints the status of a projection, and rebuilds it", async () => {
    const began = app.clock.now();
    await fill("acme", 1);
    await fill("evil", 2);
    /** The status, with the position as `at` where it is between two times. */
    const placed = async (name: string, fromMs: number, untilMs = Number.POSITIVE_INFINITY) => {
      const { position, ...told } = (await status(name)) as { readonly position: string }; // safe: it always has one
      const ms = Date.parse(position);
      return { ...told, position: ms >= fromMs && ms <= untilMs ? "as told" : position };
    };
    expect(await placed("one.mjs", began)).toEqual({
      ...{ projection: "mugs.full", declared: 1, active: 1, waiting: 2 },
      ...{ position: "as told", lagSeconds: expect.any(Number) },
    });
    app.clock.advance(90_000);
    expect(await placed("one.mjs", began, app.clock.now() - 90_000)).toMatchObject({
      waiting: 2,
      position: "as told",
    });
    expect(Number((await status("one.mjs"))["lagSeconds"])).toBeGreaterThanOrEqual(90);
    await app.settled();
    expect(await placed("two.mjs", app.clock.now())).toEqual({
      ...{ projection: "mugs.full", declared: 2, active: 1, waiting: 0 },
      ...{ position: "as told", lagSeconds: 0 },
    });
    // Only what waits lags: what came before it is counted.
    const again = app.clock.now();
    await fill("acme", 0);
    app.clock.advance(20_000);
    const { waiting, position, lagSeconds } = await status("two.mjs");
    expect([waiting, Date.parse(String(position)) >= again]).toEqual([1, true]);
    expect(Number(lagSeconds)).toBeGreaterThanOrEqual(20);
    await app.settled();

    const stopped = await run(["rebuild", at("two.mjs"), "mugs.full"], () =>
      AbortSignal.abort(new Error("stopped by SIGINT")),
    );
    expect(stopped).toEqual({ code: 1, out: [], err: "keelson: stopped by SIGINT" });

    expect(await run(["rebuild", at("two.mjs"), "mugs.full", "--tenant", "acme"])).toEqual({
      code: 0,
      out: ['mugs.full: version 2 is active now for "acme"; 2 events were replayed'],
      err: "",
    });
    expect(await status("two.mjs")).toMatchObject({ active: 1 });
    expect(
      (await run(["rebuild", at("two.mjs"), "mugs.full"], () => new AbortController().signal)).out,
    ).toEqual(["mugs.full: version 2 is active now; 3 events were replayed"]);
    expect((await run(["rebuild", at("two.mjs"), "mugs.full"])).out).toEqual([
      "mugs.full: version 2 was active already; 3 events were replayed",
    ]);
    expect(await status("two.mjs")).toMatchObject({
      projection: "mugs.full",
      declared: 2,
      active: 2,
      waiting: 0,
    });
  });

  test("names the tenant and the event that cannot be counted, continues with the rest, and exits with 1", async () => {
    const [name, event, path] = ["mugs.full", "mug.filled", at("three.mjs")];
    await fill("good", 4);
    await fill("hostile\u202e", 1e300);
    await fill("good", 5);
    const { code, out, err } = await run(["rebuild", path, name]);
    expect([code, out]).toEqual([1, [`${name}: version 3 is active now; 5 events were replayed`]]);
    const [named, summary, ...more] = err
      .split("\n")
      .filter((line) => line.startsWith("keelson: "));
    expect(named).toMatch(
      new RegExp(`^keelson: ${event} "[\\da-f-]{36}" of "hostile\\\\u202e" is not counted: \\S`),
    );
    expect(summary).toBe(
      'keelson: not whole: "hostile\\u202e"; a tenant that is not keeps the version that it reads: fix the projection, or let the events expire, and rebuild again',
    );
    expect(more).toEqual([]);
    expect(await status("three.mjs")).toMatchObject({ declared: 3, active: 3 });
    expect(await run(["rebuild", path, name])).toMatchObject({
      code: 1,
      out: [`${name}: version 3 was not switched to; 5 events were replayed`],
    });
    expect(await run(["rebuild", path, name, "--tenant", "good"])).toMatchObject({
      code: 0,
      err: "",
    });
    // What another test publishes is counted all the same.
    expect((await run(["rebuild", path, name, "--tenant", "goood"])).err).toBe(
      'keelson: no event of mugs.full is kept for the tenant "goood"; look whether that is its ID',
    );
    expect((await run(["rebuild", path, name, "--tenant", "goood"])).code).toBe(1);
  });

  test("names at most twenty events and tenants, and counts the rest", async () => {
    for (let n = 0; n < 21; n += 1) await fill(`drop-${n}`, 1e300);
    await app.call("mugs.mug.fill", { n: 1 });
    const { code, err } = await run(["rebuild", at("four.mjs"), "mugs.full"]);
    const lines = err.split("\n").filter((line) => line.startsWith("keelson: "));
    expect([code, lines.length]).toEqual([1, 22]);
    expect(lines.at(-2)).toMatch(/^keelson: \d more events are not counted$/);
    expect(lines.some((line) => line.includes(" of no tenant is not counted: "))).toBe(true);
    expect(lines.at(-1)).toMatch(
      /^keelson: not whole: no tenant, "drop-0", .* and \d more; a tenant that is not keeps the version that it reads; reads without a tenant use the version of all tenants: fix/,
    );
  });

  test("reports how far a rebuild has come, and replays a partial history only with --partial", async () => {
    const { openDatabase } = await import("../../../aws/clients/dynamodb.ts");
    const { dynamoProjections } = await import("../../../aws/stores/projection-store.ts");
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    const database = await openDatabase({
      endpoint: app.env["AWS_ENDPOINT_URL"],
      region: "us-east-1",
      credentials,
    });
    const store = dynamoProjections(database, "keelson-kept-events", app.clock);
    const startedMs = app.clock.now() - 10_000;
    const state = { version: 1, startedMs, tenant: "acme", after: "", replayed: 0 };
    await store.saveRebuild("mugs.full", undefined, state);
    const startedAt = new Date(startedMs).toISOString();
    expect(await status("one.mjs")).toMatchObject({
      rebuild: { version: 1, startedAt, tenant: "acme", replayed: 0 },
    });
    const after = `${String(startedMs - 60_000).padStart(15, "0")}#e`;
    await store.saveRebuild("mugs.full", undefined, { ...state, after, replayed: 9 });
    expect(await status("one.mjs")).toMatchObject({
      rebuild: {
        replayed: 9,
        position: new Date(startedMs - 60_000).toISOString(),
        lagSeconds: expect.any(Number),
      },
    });
    database.destroy();
    app.clock.advance(3 * 86_400_000);
    const refused = await run(["rebuild", at("two.mjs"), "mugs.full"]);
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringContaining("the oldest events have expired"),
    });
    expect(await run(["rebuild", at("two.mjs"), "mugs.full", "--partial"])).toMatchObject({
      code: 0,
      err: "",
    });
  });

  test("says which version is read without a tenant if an event without one is not counted", async () => {
    await fill("good", 1);
    await app.call("mugs.mug.fill", { n: 1 });
    const { code, out, err } = await run(["rebuild", at("four.mjs"), "mugs.full", "--partial"]);
    expect([code, out]).toEqual([
      1,
      ["mugs.full: version 4 is active now; 1 events were replayed"],
    ]);
    expect(err.split("\n").at(-1)).toBe(
      "keelson: not whole: no tenant; reads without a tenant use the version of all tenants: fix the projection, or let the events expire, and rebuild again",
    );
  });

  test("shows at a terminal how far a rebuild is, and clears that before its lines", async () => {
    await fill("acme", 1);
    await app.call("mugs.mug.fill", { n: 1 });
    const shown: string[] = [];
    const show = (text: string) => void shown.push(text);
    const code = await runCommand(
      ["projection", "rebuild", at("one.mjs"), "mugs.full", "--partial"],
      {
        ...{ env: app.env, clock: app.clock, progress: show, print: show, complain: show },
        ...{ wait: async () => undefined, developmentSecret: async () => "s" },
      },
    );
    expect([code, shown.join("\n")]).toEqual([1, expect.stringContaining(" is not counted: ")]);
    expect(shown[0]).toMatch(/^keelson-kept-events: [1-9]\d* rows read$/);
    expect(shown[1]).toMatch(/^0 of [1-9]\d* tenants, 0 events replayed$/);
    const isProgress = (text: string) => / rows read$| tenants, \d+ events replayed$/.test(text);
    expect(shown.findLast(isProgress)).toMatch(/^(\d+) of \1 tenants, [1-9]\d* events replayed$/);
    for (const [index, text] of shown.entries())
      if (isProgress(text))
        expect(shown[index + 1]).toSatisfy((next) => next === "" || isProgress(next));
  });

  test("prints its usage", async () => {
    expect(await run(["--help"])).toEqual({ code: 0, out: [usage], err: "" });
  });

  test.each([
    [[], "no action is given"],
    [["repair"], 'there is no action "repair"'],
    [["status"], "no module is given; use keelson projection status <module>"],
    [["rebuild", "one.mjs", "x", "--json"], "--json is an option of status"],
    [["status", "one.mjs", "x"], 'unexpected argument "x"'],
    [["status", "one.mjs", "--partial"], "--tenant and --partial are options of rebuild"],
    [["status", "one.mjs", "--tenant", "a"], "--tenant and --partial are options of rebuild"],
    [["rebuild", "one.mjs"], "no projection is given; name one that the module declares"],
    [["rebuild", "one.mjs", "mugs.full", "--tenant", ""], "--tenant is empty; use --tenant <id>"],
    [["rebuild", "one.mjs", "mugs.full", "x"], 'unexpected argument "x"'],
    [
      ["rebuild", "one.mjs", "mugs.empty"],
      'the module declares no projection "mugs.empty"; it declares mugs.full',
    ],
    [
      ["rebuild", "none.mjs", "mugs.full"],
      'the module declares no projection "mugs.full"; it declares none',
    ],
    [["--odd"], "there is no option --odd"],
  ])("refuses %j", async (args, message) => {
    const { code, err } = await run(args.map((each) => (each.endsWith(".mjs") ? at(each) : each)));
    expect({ code, err: err.slice(0, message.length + 9) }).toEqual({
      code: 2,
      err: `keelson: ${message}`,
    });
  });
});
