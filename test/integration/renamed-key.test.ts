import { access, buildServer, createTenantConfig, createUserConfig, defineFeature } from "keelson";
import { rotateConfigKeys } from "keelson/operators";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";

const files = defineFeature("files", (r) => {
  const config = r.config({
    keys: {
      limit: createTenantConfig("number", {
        default: 1,
        bounds: { min: 1, max: 100 },
        formerly: "uploads:config:max-mb",
      }),
      order: createUserConfig("select", {
        options: ["name", "newest"],
        default: "name",
        formerly: "files:config:sorting",
      }),
      token: createTenantConfig("text", {
        encrypted: true,
        read: access.admin,
        formerly: "files:config:secret",
      }),
    },
  });
  r.query("settings.show", {
    route: "GET /shown",
    access: access.authenticated,
    handler: async (ctx) => ({
      limit: await ctx.config(config.limit),
      order: await ctx.config(config.order),
    }),
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [files] }));
});
afterAll(() => app.close());

const caller = (tenantId: string) => ({ id: "ann", tenantId, roles: ["admin", "systemAdmin"] });
const send = async (tenantId: string, method: string, path: string, body?: unknown) => {
  const response = await app.fetch(path, {
    method,
    as: caller(tenantId),
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const settings = async (tenantId: string) => (await send(tenantId, "GET", "/shown")).body;

test("requests read values stored under a former key, clamped and cached like any row, at every level", async () => {
  expect(await settings("acme")).toEqual({ limit: 1, order: "name" });
  await app.rows.put({ scope: "system", key: "uploads:config:max-mb", value: 30 });
  expect(await settings("acme")).toEqual({ limit: 30, order: "name" });
  await app.rows.put({
    scope: "tenant",
    tenantId: "acme",
    key: "uploads:config:max-mb",
    value: 500,
  });
  await app.rows.put({
    scope: "user",
    tenantId: "acme",
    userId: "ann",
    key: "files:config:sorting",
    value: "newest",
  });
  expect(await settings("acme")).toEqual({ limit: 100, order: "newest" });
  expect(await settings("umbrella")).toEqual({ limit: 30, order: "name" });

  const began = { ...app.calls };
  expect(await settings("acme")).toEqual({ limit: 100, order: "newest" });
  expect(app.calls).toEqual(began);
});

test("the operators' API shows where a value is stored, writes it under its new key, and resets it for good", async () => {
  const path = "/config/files:config:limit";
  await app.rows.put({
    scope: "tenant",
    tenantId: "shelf",
    key: "uploads:config:max-mb",
    value: 20,
    version: 4,
  });
  const found = await send("shelf", "GET", path);
  expect(found.body["levels"]).toContainEqual(
    expect.objectContaining({ formerKey: "uploads:config:max-mb", value: 20, version: 4 }),
  );
  expect(await send("shelf", "GET", "/config/uploads:config:max-mb")).toMatchObject({
    status: 404,
  });

  expect(await send("shelf", "PUT", path, { value: 21, expectedVersion: 4 })).toMatchObject({
    status: 200,
    body: { version: 5 },
  });
  expect(await settings("shelf")).toMatchObject({ limit: 21 });
  expect(await send("shelf", "DELETE", path)).toMatchObject({ status: 200, body: { version: 6 } });
  await app.rows.put({ scope: "system", key: "uploads:config:max-mb", value: 2 });
  expect(await settings("shelf")).toMatchObject({ limit: 2 });
});

test("a rotation of a renamed secret finds nothing left to do", async () => {
  expect(
    await send("safe", "PUT", "/config/files:config:token", { value: "hunter2" }),
  ).toMatchObject({ status: 200 });
  expect(await rotateConfigKeys(await app.ctx(caller("safe")))).toMatchObject({
    resealed: 0,
    locked: 0,
  });
});
