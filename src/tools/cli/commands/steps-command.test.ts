import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Server } from "../../../app/server/server.ts";
import { newRingKey } from "../../../base/secrets/key-ring.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { runCommand } from "../command.ts";
import type { CommandContext } from "../setup/define-command.ts";
import { command } from "./steps-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { buildServer, defineFeature } from ${source};
export const provider = { call: () => { throw new Error("socket hang up"); }, calls: 0, after: () => undefined };
const handler = async (ctx) => {
  const charge = await ctx.step("charge", {}, (key) => {
    provider.calls += 1;
    return provider.call(key);
  });
  await provider.after();
  return charge;
};
const shop = defineFeature("shop", (r) => {
  r.write("order.place", { handler });
  r.write("order.seal", { replay: "encrypted", handler });
});
export const server = buildServer({ features: [shop], environment: "production", keyRing: { parameter: "/ring" }, log: { level: "error" } });`;

const ann = { id: "ann", tenantId: "acme" };
let folder: string;
let path: string;
let app: TestApp;
let provider: { call: (key: string) => unknown; calls: number; after: () => unknown };
let [printed, complained]: [string[], string[]] = [[], []];
let keys = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-steps-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server; readonly provider: typeof provider } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  provider = loaded.provider;
  const ring = JSON.stringify({ active: "k1", keys: { k1: newRingKey() } });
  app = await startTestApp(loaded.server, { secureParameters: { "/ring": ring } });
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  provider.call = () => {
    throw new Error("socket hang up");
  };
  provider.calls = 0;
  provider.after = () => undefined;
});

/** Runs the command, and gives its exit code. */
async function steps(
  args: readonly string[],
  now = () => app.clock.now(),
  more: Partial<CommandContext> = {},
): Promise<number> {
  [printed, complained] = [[], []];
  return runCommand(["steps", ...args], {
    env: app.env,
    clock: { now },
    print: (line) => void printed.push(line),
    complain: (line) => void complained.push(line),
    wait: async () => undefined,
    developmentSecret: () => Promise.reject(new Error("none")),
    ...more,
  });
}

const place = (idempotencyKey: string, name = "shop.order.place") =>
  app.call(name, {}, { as: ann, idempotencyKey });

/** Leaves a step of which nobody knows how it ended, and gives its ID and its write's key. */
async function unknownStep(name?: string): Promise<{ id: string; key: string }> {
  const key = `k${++keys}`;
  let id = "";
  provider.call = (given) => {
    id = given;
    throw new Error("socket hang up");
  };
  await expect(place(key, name)).rejects.toThrow();
  await expect(place(key, name)).rejects.toMatchObject({ code: "unknown_outcome", key: id });
  provider.calls = 0;
  return { id, key };
}

test("lists steps with their status, or only unknown ones with --unknown", async () => {
  const { id } = await unknownStep();
  provider.call = () => ({ id: "ch_1" });
  await place("done");
  expect(await steps(["list", path, "--json"])).toBe(0);
  const listed = printed.map((line) => JSON.parse(line) as { id: string; status: string });
  expect(listed.find((step) => step.id === id)).toEqual({
    ...{ id, step: "charge", handler: "shop.order.place", tenantId: "acme", status: "unknown" },
    requestId: expect.any(String),
    startedAt: expect.any(String),
  });
  expect(listed.map(({ status }) => status)).toContain("done");

  expect(await steps(["list", path, "--unknown", "--json"])).toBe(0);
  expect(printed.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual([id]);
});

test("shows at a terminal how many rows it has read, and clears that before its lines", async () => {
  const { id } = await unknownStep();
  const shown: string[] = [];
  const context = {
    progress: (text: string) => void shown.push(text),
    print: (line: string) => void shown.push(line.includes(id) ? "its line" : "another line"),
    complain: (line: string) => void shown.push(line),
  };
  const args = ["list", path, "--unknown"];
  expect(await steps(args, undefined, context)).toBe(0);
  expect(shown[0]).toMatch(/^keelson-once: [1-9]\d* rows read$/);
  expect(shown.slice(1, 3)).toEqual(["", "another line"]);
  expect(shown).toContain("its line");

  shown.length = 0;
  app.clock.advance(15 * 86_400_000);
  expect(await steps(args, undefined, context)).toBe(0);
  expect(shown.slice(1)).toEqual(["", "keelson: no step has an unknown outcome"]);
});

test("lists a step in progress as running, and refuses to resolve it", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let id = "";
  provider.call = async (key) => {
    id = key;
    await promise;
    return 1;
  };
  const placed = place("running");
  await expect.poll(() => id).not.toBe("");
  await steps(["list", path, "--json"]);
  expect(
    printed.map((line) => JSON.parse(line) as { id: string }).find((step) => step.id === id),
  ).toMatchObject({
    status: "running",
  });
  expect(await steps(["resolve", path, id, "--retry"])).toBe(1);
  expect(complained).toEqual([
    `keelson: the step ${id} is running; only one that is unknown is resolved`,
  ]);
  resolve();
  await placed;
});

test.each(["shop.order.place", "shop.order.seal"])(
  "a later run of %s gets the result given to resolve, and makes no call",
  async (name) => {
    const { id, key } = await unknownStep(name);
    expect(await steps(["resolve", path, id, "--result", '{ "id": "ch_7" }'])).toBe(0);
    expect(printed).toEqual([`charge of ${name}: done`]);
    expect(await place(key, name)).toEqual({ id: "ch_7" });
    expect(provider.calls).toBe(0);
    expect(await steps(["resolve", path, id, "--retry"])).toBe(1);
    expect(complained).toEqual([
      `keelson: the step ${id} is done; only one that is unknown is resolved`,
    ]);
  },
);

test("after resolve --retry, the next run calls again with the same key", async () => {
  const { id, key } = await unknownStep();
  expect(await steps(["resolve", path, id, "--retry"])).toBe(0);
  expect(printed).toEqual(["charge of shop.order.place: not done; the next run calls again"]);
  provider.call = (given) => ({ given });
  expect(await place(key)).toEqual({ given: id });
});

test("refuses to resolve a step that changes concurrently", async () => {
  const { id } = await unknownStep();
  const { db } = await app.ctx(ann);
  const { UpdateCommand } = await import("@aws-sdk/lib-dynamodb");
  // Each time that the command asks for the time, last when it has read the step.
  const change = () =>
    void db.send(
      new UpdateCommand({
        TableName: "keelson-once",
        Key: { pk: `step:${id}`, sk: "step" },
        UpdateExpression: "SET #owner = :other",
        ExpressionAttributeNames: { "#owner": "owner" },
        ExpressionAttributeValues: { ":other": crypto.randomUUID() },
      }),
    );
  const now = () => {
    change();
    return app.clock.now();
  };
  expect(await steps(["resolve", path, id, "--retry"], now)).toBe(1);
  expect(complained).toEqual([
    `keelson: the step ${id} has changed in the meantime; list it again`,
  ]);
});

test("does not list expired steps", async () => {
  await unknownStep();
  app.clock.advance(15 * 86_400_000);
  expect(await steps(["list", path, "--json"])).toBe(0);
  expect(printed).toEqual([]);
});

test.each([
  [[], "no action is given; use list or resolve"],
  [["show", "m"], 'there is no action "show"; use list or resolve'],
  [["list"], "no module is given; use keelson steps list <module>"],
  [["list", "m", "x"], 'unexpected argument "x"'],
  [["list", "m", "--retry"], "--result and --retry are options of resolve"],
  [["list", "m", "--result", "1"], "--result and --retry are options of resolve"],
  [["resolve", "m", "i", "x", "--retry"], 'unexpected argument "x"'],
  [["resolve", "m", "--retry"], "no step is given; use keelson steps resolve <module> <id>"],
  [["resolve", "m", "i"], "say either --result <json> or --retry"],
  [["resolve", "m", "i", "--result", "1", "--retry"], "say either --result <json> or --retry"],
  [["resolve", "m", "i", "--unknown", "--retry"], "--unknown and --json are options of list"],
  [["resolve", "m", "i", "--result", "{"], "--result is not JSON: {"],
  [["list", "nowhere.mjs"], 'there is no module "nowhere.mjs"'],
])("%j exits with 2 and names the help", async (args, message) => {
  expect(await steps(args)).toBe(2);
  expect(complained).toEqual([`keelson: ${message}`, "Run `keelson steps --help`."]);
});

test("reports an unknown step ID, and prints its help", async () => {
  expect(await steps(["resolve", path, "x", "--retry"])).toBe(1);
  expect(complained).toEqual(['keelson: there is no step "x"']);
  expect(await steps(["--help"])).toBe(0);
  expect(printed).toEqual([usage]);
});
