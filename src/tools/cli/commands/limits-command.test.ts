import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Server } from "../../../app/server/server.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";
import { runCommand } from "../command.ts";
import { command } from "./limits-command.ts";

const { usage } = command;

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const module = `import { access, buildServer, createTenantConfig, defineFeature } from ${source};
const notes = defineFeature("notes", (r) => {
  const { perDay } = r.config({ keys: { perDay: createTenantConfig("number", { default: 2 }) } });
  const route = { access: access.everyone, handler: async () => ({}) };
  r.query("note.list", { route: "GET /notes", ...route, rateLimit: [
    { per: "tenant", requests: perDay, window: "day" },
    { per: "user", requests: 5, window: "day" },
  ] });
});
export const server = buildServer({ features: [notes], environment: "production", log: { level: "error" } });`;

let folder: string;
let path: string;
let app: TestApp;
let [printed, complained]: [string[], string[]] = [[], []];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-limits-"));
  path = join(folder, "server.mjs");
  await writeFile(path, module);
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(path).href
  );
  app = await startTestApp(loaded.server);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

/** Runs the command, and returns its exit code. */
async function limits(...args: readonly string[]): Promise<number> {
  [printed, complained] = [[], []];
  return runCommand(["limits", ...args], {
    env: app.env,
    clock: app.clock,
    print: (line) => void printed.push(line),
    complain: (line) => void complained.push(line),
    wait: async () => undefined,
    developmentSecret: () => Promise.reject(new Error("none")),
  });
}

const ask = async (tenantId: string) =>
  (await app.fetch("/notes", { as: { id: "ann", tenantId, roles: [] } })).status;
const lines = () => printed.map((line): Record<string, unknown> => JSON.parse(line));

test("shows who is limited, by which key, and resets a tenant", async () => {
  app.clock.advance(86_400_000 - (app.clock.now() % 86_400_000));
  expect([await ask("acme"), await ask("acme"), await ask("acme"), await ask("umbrella")]).toEqual([
    ...[200, 200, 429, 200],
  ]);
  const until = new Date(app.clock.now() + 86_400_000)
    .toISOString()
    .replace(/T.*/, "T00:00:00.000Z");
  const used = {
    ...{ limit: "notes.note.list per-day", key: "notes:config:per-day", tenantId: "acme" },
    ...{ of: "tenant acme", window: "day", taken: 2, number: 2, until },
  };
  expect(await limits("list", path, "--json")).toBe(0);
  expect(lines()).toEqual([used]);
  expect(await limits("show", path, "acme", "--json")).toBe(0);
  expect(lines()).toHaveLength(2);
  expect(lines()).toContainEqual(used);

  expect(await limits("list", path)).toBe(0);
  expect(printed[0]).toMatch(
    /^limit +kind +key +tenantId +of +window +taken +number +until +since$/,
  );

  expect(await limits("reset", path, "acme")).toBe(0);
  expect(printed).toEqual(["rows removed: 2"]);
  app.clock.advance(60_000);
  expect(await ask("acme")).toBe(200);
  expect(await limits("reset", path, "umbrella")).toBe(0);
  expect(printed).toEqual(["rows removed: 2"]);
  expect(await limits("reset", path, "nobody")).toBe(0);
  expect(printed).toEqual(["rows removed: 0"]);
});

test("ignores windows that have ended", async () => {
  app.clock.advance(2 * 86_400_000);
  expect(await limits("show", path, "acme", "--json")).toBe(0);
  expect(printed).toEqual([]);
});

test("does not correct a quota that the server lacks", async () => {
  const args = ["acme", "notes.count", "1", "--reason", "test"];
  expect(await limits("correct", path, ...args)).toBe(2);
  expect(complained.join("\n")).toContain("it declares none");
});

test.each([" ", "x".repeat(501)])(
  "refuses the reason %j before it starts a server",
  async (reason) => {
    const args = ["correct", "no-such-server.js", "acme", "notes.count", "1", "--reason", reason];
    expect(await limits(...args)).toBe(2);
    expect(complained.join("\n")).toContain("the reason is");
  },
);

test.each([
  [[], "no action is given"],
  [["list"], "no module"],
  [["reset", "server.js", "acme", "--json"], "--json is an option of list and show"],
  [["show", "server.js"], "no tenant is given; use keelson limits show <module> <tenant>"],
  [["list", "server.js", "acme"], 'unexpected argument "acme"'],
  [["show", "server.js", "acme", "more"], 'unexpected argument "more"'],
])("refuses %j", async (args, problem) => {
  expect(await limits(...args)).toBe(2);
  expect(complained.join("\n")).toContain(problem);
});

test("prints its usage", async () => {
  expect(await limits("--help")).toBe(0);
  expect(printed.join("\n")).toBe(usage.trimEnd());
});
