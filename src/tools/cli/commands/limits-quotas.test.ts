import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { PutItemCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, expect, test } from "vitest";
import type { Server } from "../../../app/server/server.ts";
import { openDatabase } from "../../../aws/clients/dynamodb.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { runCommand } from "../command.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { access, buildServer, createTenantConfig, defineFeature } from ${source};
const numbers = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const files = defineFeature("files", (r) => {
  const config = r.config({
    keys: { storageMb: createTenantConfig("number", { default: 10, bounds: { min: 0, max: 99 } }) },
  });
  const storage = r.quota("storage", { limit: config.storageMb, window: "forever" });
  const daily = r.quota("daily", { limit: 3, window: "day" });
  r.write("file.add", {
    route: "POST /files",
    access: access.authenticated,
    input: numbers,
    handler: async (ctx, { storageMb, count }) => {
      await storage.add(ctx, storageMb);
      await daily.add(ctx, count);
    },
  });
});
export const server = buildServer({ features: [files], environment: "production", log: { level: "info" } });`;

let end: (() => Promise<void>) | undefined;
afterEach(async () => {
  await end?.();
  end = undefined;
});

/** A test app of a server, and `keelson limits` on its data. */
async function begun(text: string) {
  const folder = await mkdtemp(join(tmpdir(), "keelson-quotas-"));
  const path = join(folder, "server.mjs");
  await writeFile(path, text);
  const { server }: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  const app = await startTestApp(server);
  end = async () => {
    await app.close();
    await rm(folder, { recursive: true });
  };
  const complained: string[] = [];
  const printed: string[] = [];
  const shown: string[] = [];
  const run = async (...args: readonly string[]) => {
    complained.splice(0);
    shown.splice(0);
    printed.splice(0);
    return runCommand(["limits", ...args], {
      env: app.env,
      clock: app.clock,
      print: (line) => void printed.push(line),
      complain: (line) => void complained.push(line),
      progress: (text) => void shown.push(text),
      wait: async () => undefined,
      developmentSecret: () => Promise.reject(new Error("none")),
    });
  };
  const limits = async (...args: readonly string[]) => {
    await run(...args);
    return printed.map((line): unknown => JSON.parse(line));
  };
  const add = (tenantId: string, body: object) =>
    app.fetch("/files", { method: "POST", as: { id: "ann", tenantId }, body });
  return { server, app, folder, path, complained, printed, shown, run, limits, add };
}

/** Makes the usage of `files.storage` of a tenant unreadable. */
async function damage({ env }: TestApp, tenantId: string) {
  const database = await openDatabase({
    endpoint: env["AWS_ENDPOINT_URL"],
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "s" },
  });
  const { Items = [] } = await database.send(new ScanCommand({ TableName: "keelson-once" }));
  const item = Items.find(
    ({ pk, sk }) => pk?.S?.includes(tenantId) && sk?.S?.startsWith("files.storage#"),
  );
  expect(item).toBeDefined();
  await database.send(
    new PutItemCommand({ TableName: "keelson-once", Item: { ...item, used: { S: "many" } } }),
  );
  database.destroy();
}

test("shows the quotas of a tenant, and the used ones of all tenants", async () => {
  const { app, folder, path, complained, limits, add } = await begun(module);
  expect(await limits("show", path, "acme", "--json")).toEqual([]);
  expect((await add("acme", { storageMb: 10, count: 1 })).status).toBe(204);
  expect((await add("globex", { storageMb: 1, count: 1 })).status).toBe(204);
  const storage = {
    ...{ limit: "files.storage", kind: "quota", key: "files:config:storage-mb" },
    ...{ tenantId: "acme", window: "forever", taken: 10, number: 10 },
  };
  const daily = {
    ...{ limit: "files.daily", kind: "quota", tenantId: "acme", window: "day" },
    ...{ taken: 1, number: 3, until: expect.stringMatching(/T00:00:00.000Z$/) },
  };
  expect(await limits("show", path, "acme", "--json")).toEqual([daily, storage]);
  expect(await limits("list", path, "--json")).toEqual([storage]);
  // A release without one of the quotas.
  const next = join(folder, "next.mjs");
  await writeFile(next, module.replaceAll(/^.*daily.*$/gm, ""));
  expect(await limits("show", next, "acme", "--json")).toEqual([storage]);

  // An operator corrects the usage, even above the limit.
  const correct = (...args: readonly string[]) => limits("correct", path, "acme", ...args);
  const reason = ["--reason", "restored a backup"];
  const corrected = { ...storage, taken: 12 };
  expect(await correct("files.storage", "12", ...reason)).toEqual([corrected]);
  expect(await limits("show", path, "acme", "--json")).toEqual([daily, corrected]);
  expect(await correct("files.storage", "10", ...reason)).toEqual([storage]);
  const facts = { quota: "files.storage", before: 12, used: 10, reason: "restored a backup" };
  const [line] = complained.filter((one) => one.includes("quota.corrected"));
  expect(JSON.parse(String(line))).toMatchObject({ level: "info", tenantId: "acme", ...facts });
  // Even if something else has changed the row, so that it cannot be read.
  await damage(app, "acme");
  expect(await correct("files.storage", "10", ...reason)).toEqual([storage]);

  for (const [args, problem] of [
    [["files.storag", "1", ...reason], "it declares files.storage, files.daily"],
    [["files.storage", "1.5", ...reason], 'the usage is "1.5"; use a whole number from 0'],
    [["files.storage", ...reason], "the usage is undefined; use a whole number from 0"],
    [reason, "no quota is given; use keelson limits correct"],
    [["files.storage", "1"], "no reason is given; use keelson limits correct"],
    [["files.storage", "1", "2", ...reason], 'unexpected argument "2"'],
  ] as const) {
    expect(await correct(...args)).toEqual([]);
    expect(complained.join("\n")).toContain(problem);
  }
  expect(await limits("show", path, "acme", ...reason)).toEqual([]);
  expect(complained.join("\n")).toContain("--reason is only for keelson limits correct");
  expect(await limits("show", path, "acme", "--json")).toEqual([daily, storage]);

  // A used period that has ended limits nobody.
  expect((await add("globex", { storageMb: 0, count: 2 })).status).toBe(204);
  expect(await limits("list", path, "--json")).toHaveLength(2);
  app.clock.advance(86_400_000);
  expect(await limits("list", path, "--json")).toEqual([storage]);
});

test("shows at a terminal how many rows it has read for rate limits and for quotas", async () => {
  const { path, shown, run, add } = await begun(module);
  expect((await add("acme", { storageMb: 10, count: 1 })).status).toBe(204);
  const read = (what: string) =>
    expect.stringMatching(new RegExp(`^${what}, keelson-once: [1-9]\\d* rows read$`));
  expect(await run("list", path)).toBe(0);
  expect(shown).toEqual([read("rate limits"), "", read("quotas"), ""]);
  // Quotas of one tenant are read without a scan.
  expect(await run("show", path, "acme")).toBe(0);
  expect(shown).toEqual([read("rate limits"), "", ""]);
  expect(await run("reset", path, "acme")).toBe(0);
  expect(shown).toEqual([read("rate limits"), ""]);
});

test("lists the other tenants if the usage or the limit of one cannot be read, and fails", async () => {
  const { app, path, complained, printed, run, add } = await begun(module);
  for (const tenantId of ["acme", "globex"])
    expect((await add(tenantId, { storageMb: 10, count: 1 })).status).toBe(204);
  await damage(app, "acme");
  const problem =
    'keelson: the quota files.storage of "acme" cannot be read: the usage of the quota files.storage of "acme" is "many"; set it with keelson limits correct';
  expect([await run("list", path), complained]).toEqual([1, [problem]]);
  expect(printed).toEqual([expect.stringMatching(/^limit /), expect.stringContaining("globex")]);
  expect(await run("list", path, "--json")).toBe(1);
  expect(printed.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ limit: "files.storage", tenantId: "globex", taken: 10 }),
  ]);
  expect([await run("show", path, "acme", "--json"), complained]).toEqual([1, [problem]]);
  expect(printed).toEqual([expect.stringContaining("files.daily")]);
  await damage(app, "globex");
  expect([await run("list", path), printed]).toEqual([1, []]);
  expect(complained.join("\n")).not.toContain("no caller is limited");
});

test("corrects the quota of a suspended tenant, whose other work stays refused", async () => {
  const { server, path, limits, add } = await begun(
    module.replace("features:", "tenants: true, features:"),
  );
  await server.tenants.create({ id: "acme" });
  expect((await add("acme", { storageMb: 10, count: 1 })).status).toBe(204);
  await server.tenants.suspend("acme", { reason: "a restore" });
  expect((await add("acme", { storageMb: 0, count: 1 })).status).toBe(403);
  const correction = ["acme", "files.storage", "4", "--reason", "restored rows"];
  expect(await limits("correct", path, ...correction)).toEqual([
    expect.objectContaining({ tenantId: "acme", taken: 4, number: 10 }),
  ]);
  expect((await add("acme", { storageMb: 0, count: 1 })).status).toBe(403);
});
