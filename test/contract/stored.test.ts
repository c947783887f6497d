import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildServer, createTenantConfig, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCommand } from "../../src/tools/cli/command.ts";

const shop = (max: number) =>
  defineFeature("shop", (r) => {
    r.config({
      keys: { limit: createTenantConfig("number", { default: 5, bounds: { min: 1, max } }) },
    });
  });
const served = Symbol.for("keelson.test.stored");
const servers = {
  deployed: buildServer({ features: [shop(100)] }),
  released: buildServer({ features: [shop(50)] }),
};

let app: TestApp;
let folder: string;
beforeAll(async () => {
  app = await startTestApp(servers.deployed);
  await app.rows.put({ scope: "tenant", tenantId: "acme", key: "shop:config:limit", value: 80 });
  await app.rows.put({
    scope: "tenant",
    tenantId: "umbrella",
    key: "shop:config:limit",
    value: 40,
  });
  folder = await mkdtemp(join(tmpdir(), "keelson-stored-"));
  Object.defineProperty(globalThis, served, { value: servers, configurable: true });
  for (const name of Object.keys(servers)) {
    await writeFile(
      join(folder, `${name}.mjs`),
      `export const server = globalThis[Symbol.for("keelson.test.stored")].${name};`,
    );
  }
});
afterAll(async () => {
  Reflect.deleteProperty(globalThis, served);
  await rm(folder, { recursive: true });
  await app.close();
});

async function run(action: string, name: string, ...args: readonly string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommand(
    [
      "contract",
      action,
      join(folder, `${name}.mjs`),
      "--file",
      join(folder, "contract.json"),
      ...args,
    ],
    {
      env: app.env,
      clock: app.clock,
      print: (line) => out.push(line),
      complain: (line) => err.push(line),
      wait: () => Promise.reject(new Error("nothing is waited for")),
      developmentSecret: () => Promise.reject(new Error("not to be asked for")),
    },
  );
  return { code, out: out.join("\n"), err: err.join("\n") };
}

test("keelson contract check --stored lists the tenants' settings that a release reads differently", async () => {
  await run("write", "deployed");
  const { code, out, err } = await run("check", "released", "--stored", "--json");
  expect({ code, err }).toEqual({ code: 1, err: "" });
  expect(JSON.parse(out)).toMatchObject({
    changes: [{ breaks: "row", where: "shop:config:limit", rule: "bounds-narrowed" }],
    stored: [
      {
        key: "shop:config:limit",
        scope: "tenant",
        tenantId: "acme",
        verdict: "clamped",
        reads: 50,
      },
    ],
    counts: { clamped: 1, fallback: 0, ignored: 0 },
    rows: 2,
  });
  const text = await run("check", "released", "--stored");
  expect(text.out).toContain(
    "2 stored values: 1 clamped, 0 fall back, 0 ignored\nshop:config:limit, tenant of acme: clamped, reads 50\n",
  );
});
