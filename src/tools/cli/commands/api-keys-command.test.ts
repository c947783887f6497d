import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ranCommand } from "../../../../test/support/ran-command.ts";
import type { Server } from "../../../app/server/server.ts";
import { generateSecret, hashOfSecret } from "../../../parts/api-keys/secret.ts";
import { startTestApp, type TestApp } from "../../testing/index.ts";

const source = JSON.stringify(new URL("../../../index.ts", import.meta.url).href);
const server = `import { access, buildServer, defineFeature } from ${source};
const who = defineFeature("who", (r) => {
  r.query("caller.show", { route: "GET /caller", access: access.authenticated, handler: async ({ user }) => user });
});
export const server = buildServer({ features: [who], auth: { apiKeys: true }, log: { level: "error" } });`;

let folder: string;
let app: TestApp;
const at = (name: string) => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-api-keys-"));
  await writeFile(at("server.mjs"), server);
  const loaded: { readonly server: Server } = await import(
    /* @vite-ignore */ pathToFileURL(at("server.mjs")).href
  );
  app = await startTestApp(loaded.server);
});
afterAll(async () => {
  await app.close();
  await rm(folder, { recursive: true });
});

interface Key {
  readonly id: string;
  readonly key: string;
}

const adminOf = (tenantId: string) => ({ id: "ann", tenantId, roles: ["admin"] });

async function create(tenantId: string, body: object = {}): Promise<Key> {
  const given = { name: "billing", roles: ["admin"], ...body };
  const response = await app.fetch("/api-keys", { body: given, as: adminOf(tenantId) });
  expect(response.status).toBe(201);
  return (await response.json()) as Key; // safe: as the route answers
}

const statusOf = async (key: string) =>
  (await app.fetch("/caller", { headers: { "x-api-key": key } })).status;

function ran(args: readonly string[], input?: string) {
  const [command = "", action = "", ...others] = args;
  const context = { env: app.env, clock: app.clock };
  const piped = input === undefined ? {} : { input: () => Readable.from([input]) };
  return ranCommand([command, action, at("server.mjs"), ...others], { ...context, ...piped });
}

async function rows(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const root = { id: "root", tenantId: "ops", roles: ["systemAdmin"] };
  const database = (await app.ctx(root)).acrossTenants("a test");
  return (await database.send(new ScanCommand({ TableName: "keelson-once" }))).Items ?? [];
}

describe("keelson api-keys", () => {
  test("lists the keys of a tenant, oldest first and without their secrets", async () => {
    const first = await create("listed", { expiresInSeconds: 60 });
    const second = await create("listed", { name: "reports" });
    await create("other");
    await statusOf(first.key);
    const { code, out, err } = await ran(["api-keys", "list", "listed", "--json"]);

    expect([code, err]).toEqual([0, ""]);
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    const common = { roles: ["admin"], createdAt: time };
    expect(out.map((line) => JSON.parse(line))).toEqual([
      { ...common, id: first.id, name: "billing", expiresAt: time, lastUsedAt: time },
      { ...common, id: second.id, name: "reports" },
    ]);
    expect(out.join("")).not.toContain(hashOfSecret(first.key));
    expect(out.join("")).not.toContain("kln_");
  });

  test("revokes a key, which other processes refuse within five seconds", async () => {
    const { id, key } = await create("revoked");
    expect(await statusOf(key)).toBe(200);
    expect(await ran(["api-keys", "revoke", "revoked", id])).toEqual({
      code: 0,
      out: [`revoked ${id} (billing) of revoked`],
      err: "",
    });
    await app.clock.advance(5_000);
    expect(await statusOf(key)).toBe(401);
    const again = await ran(["api-keys", "revoke", "revoked", id]);
    expect(again).toMatchObject({ code: 1, err: "keelson: there is no such API key" });
  });

  test("revokes a leaked key from standard input, with its tenant or without", async () => {
    for (const args of [["leaked"], []]) {
      const { id, key } = await create("leaked");
      const { code, out, err } = await ran(["api-keys", "revoke", ...args], `${key}\n`);
      expect([code, out, err]).toEqual([0, [`revoked ${id} (billing) of leaked`], ""]);
      await app.clock.advance(5_000);
      expect(await statusOf(key)).toBe(401);
    }
  });

  test("revokes no key of another tenant, and none whose secret is not valid any more", async () => {
    const { id, key } = await create("owner");
    expect(await ran(["api-keys", "revoke", "thief"], key)).toMatchObject({
      code: 1,
      err: "keelson: the key is one of another tenant; nothing was revoked",
    });
    expect((await ran(["api-keys", "revoke", "thief", id])).code).toBe(1);
    await app.fetch(`/api-keys/${id}/rotate`, {
      body: { overlapSeconds: 1 },
      as: adminOf("owner"),
    });
    await app.clock.advance(1_000);
    expect(await ran(["api-keys", "revoke"], key)).toMatchObject({
      code: 1,
      err: "keelson: the key has expired or was replaced; nothing was revoked",
    });
    expect((await ran(["api-keys", "revoke"], generateSecret())).code).toBe(1);
  });

  test.each([
    ["list", [], undefined, "no tenant is given"],
    ["list", ["a", "b"], undefined, "unexpected argument"],
    ["revoke", ["a", "b", "--json"], undefined, "--json is an option of list"],
    ["revoke", ["a"], undefined, "neither an ID is given nor a key on standard input"],
    ["revoke", ["a"], "kln_1", "standard input is not an API key"],
    ["revoke", [""], "kln_1", "the tenant is not a string"],
    ["revoke", ["a"], "x".repeat(10_001), "standard input is not an API key"],
    ["show", ["a"], undefined, "there is no action"],
  ] as const)("refuses %s %j (%#)", async (action, args, input, message) => {
    const { code, err } = await ran(["api-keys", action, ...args], input);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
    expect(err).toContain("Run `keelson api-keys --help`.");
  });
});

test("an export of a tenant has its keys without hashes, and an erasure leaves none valid", async () => {
  const { id, key } = await create("gone");
  const rotated = await app.fetch(`/api-keys/${id}/rotate`, {
    body: { overlapSeconds: 600 },
    as: adminOf("gone"),
  });
  const second = (await rotated.json()) as Key; // safe: as the route answers
  const hashes = [hashOfSecret(key), hashOfSecret(second.key)];
  const stored = JSON.stringify((await rows()).filter(({ tenantId }) => tenantId === "gone"));
  for (const hash of hashes) expect(stored).toContain(hash);

  expect((await ran(["tenant", "export", "gone", "--out", at("gone.jsonl")])).err).toBe("");
  const file = await readFile(at("gone.jsonl"), "utf8");
  expect(file).toContain(id);
  for (const secret of [...hashes, key, second.key]) expect(file).not.toContain(secret);

  expect((await ran(["tenant", "erase", "gone", "--yes"])).code).toBe(0);
  expect((await rows()).filter(({ tenantId }) => tenantId === "gone")).toEqual([]);
  await app.clock.advance(60_000);
  expect([await statusOf(key), await statusOf(second.key)]).toEqual([401, 401]);
});
