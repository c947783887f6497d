// What a refusal leaves behind: a metric without tenants, a documented response, and rows that go with their tenant.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import type { Server } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ranCommand } from "../support/ran-command.ts";

const source = JSON.stringify(new URL("../../src/index.ts", import.meta.url).href);
const module = `import { access, buildServer, defineFeature } from ${source};
const files = defineFeature("files", (r) => {
  const storage = r.quota("storage", { limit: 10, window: "forever" });
  r.query("file.list", {
    route: "GET /files",
    access: access.everyone,
    rateLimit: { per: "tenant", requests: 1, window: "day" },
    handler: async () => ({ items: [] }),
  });
  r.write("file.create", {
    route: "POST /files",
    access: access.tenant,
    handler: async (ctx) => {
      await storage.add(ctx, 3);
      return ctx.commit([], {});
    },
  });
});
export const server = buildServer({
  features: [files],
  openapi: { access: access.everyone },
  metrics: { access: access.everyone },
  environment: "production",
  log: { level: "error" },
});`;

let folder: string;
let path: string;
let app: TestApp;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-limited-"));
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

const ann = { id: "ann", tenantId: "acme", roles: [] };
const eve = { id: "eve", tenantId: "umbrella", roles: [] };
const listed = async (as: typeof ann) => (await app.fetch("/files", { as })).status;

test("a refusal is counted in a metric whose labels name no tenant", async () => {
  expect([await listed(ann), await listed(ann), await listed(ann)]).toEqual([200, 429, 429]);
  const scraped = await (await app.fetch("/metrics")).text();
  expect(scraped).toMatch(/^keelson_rate_limited_total 2$/m);
  expect(scraped).not.toContain("acme");
});

test("OpenAPI has the 429 of a limited route with its fields, and another one of a quota", async () => {
  interface Described {
    readonly $ref?: string;
    readonly headers?: object;
  }
  const { paths, components } = (await (await app.fetch("/openapi.json")).json()) as {
    readonly paths: Record<string, Record<string, { responses: Record<string, Described> }>>;
    readonly components: { readonly responses: Record<string, Described> };
  };
  const { get, post } = paths["/files"] ?? {};
  const refused = get?.responses["429"]?.$ref?.split("/").at(-1) ?? "";
  for (const described of [get?.responses["200"], components.responses[refused]])
    expect(Object.keys(described?.headers ?? {})).toEqual(
      expect.arrayContaining(["RateLimit", "RateLimit-Policy"]),
    );
  expect(components.responses[refused]?.headers).toHaveProperty("Retry-After");
  expect(post?.responses["429"]?.$ref).toBe("#/components/responses/QuotaExceeded");
});

test("the row of a rate limit expires an hour after its window", async () => {
  await listed(ann);
  const context = await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] });
  const { Items = [] } = await context
    .acrossTenants("a test")
    .send(new ScanCommand({ TableName: "keelson-once" }));
  const rows = Items.filter(({ pk }) => String(pk).startsWith("rate"));
  const endMs = (Math.floor(app.clock.now() / 86_400_000) + 1) * 86_400_000;
  expect(rows.map(({ expiration }) => expiration)).toEqual([endMs / 1_000 + 3_600]);
});

test("the rows of limits and quotas carry their tenant, and are erased with it", async () => {
  for (const as of [ann, eve]) {
    expect((await app.fetch("/files", { method: "POST", as })).status).toBe(200);
    await listed(as);
  }
  const database = (
    await app.ctx({ id: "root", tenantId: "ops", roles: ["systemAdmin"] })
  ).acrossTenants("a test");
  const keysOf = async (tenantId: string) => {
    const { Items = [] } = await database.send(new ScanCommand({ TableName: "keelson-once" }));
    const ofTenant = Items.filter((item) => item["tenantId"] === tenantId);
    return [...new Set(ofTenant.map(({ pk }) => String(pk).split(/[#:]/)[0]))].toSorted();
  };
  const before = await keysOf("umbrella");
  expect(before).toEqual(["quota", "rate"]);
  expect(await keysOf("acme")).toEqual(before);
  const erased = await ranCommand(["tenant", "erase", path, "acme", "--yes"], {
    env: app.env,
    clock: app.clock,
    wait: async () => undefined,
  });
  expect(erased.code).toBe(0);
  expect(await keysOf("acme")).toEqual([]);
  expect(await keysOf("umbrella")).toEqual(before);
});
