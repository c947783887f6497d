import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { BootError } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import { startTestApp, type TestApp } from "../../tools/testing/app/test-app.ts";
import { defineFeature } from "../features/feature.ts";
import type { ServerOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";

const mugs = defineFeature("mugs", (r) => {
  r.query("mug.count", {
    route: "GET /mugs",
    access: access.everyone,
    output: z.object({ count: z.bigint() }),
    handler: () => ({ count: 1n }),
  });
});
const apps: TestApp[] = [];
const start = async (
  openapi: ServerOptions["openapi"],
  environment: "development" | "production" | "test",
) => {
  const app = await startTestApp(
    buildServer({ features: [mugs], ...(openapi !== undefined && { openapi }), environment }),
  );
  apps.push(app);
  return app;
};
afterAll(() => Promise.all(apps.map((app) => app.close())));

describe("GET /openapi.json", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await start(undefined, "development");
  });

  test("is public in development, and logs once what it cannot describe", async () => {
    const response = await app.fetch("/openapi.json");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const document = (await response.json()) as { openapi: string; paths: object };
    expect(document.openapi).toBe("3.1.1");
    // What is there in development alone is no promise.
    expect(Object.keys(document.paths)).toEqual(["/mugs", "/log", "/health/ready", "/health/live"]);
    await app.fetch("/openapi.json");
    const warned = app.logs.filter(({ msg }) => msg === "openapi.undescribed");
    expect(warned).toMatchObject([
      { level: "warn", schemas: [{ where: "mugs.mug.count output: count", vendor: "zod" }] },
    ]);
  });

  test("is not sent again to a client that has it", async () => {
    const first = await app.fetch("/openapi.json");
    const etag = first.headers.get("etag") ?? "";
    const again = await app.fetch("/openapi.json", {
      headers: { "if-none-match": `"other", ${etag}` },
    });
    expect([again.status, again.headers.get("etag"), await again.text()]).toEqual([304, etag, ""]);
    expect(
      (await app.fetch("/openapi.json", { headers: { "if-none-match": '"other"' } })).status,
    ).toBe(200);
  });
});

test.each([
  [undefined, "production"],
  [undefined, "test"],
  [{ title: "Mugs" }, "production"],
  [false, "development"],
] as const)("is absent with %j in %s", async (openapi, environment) => {
  const app = await start(openapi, environment);
  expect((await app.fetch("/openapi.json")).status).toBe(404);
});

test("is available elsewhere to callers the server admits, and describes itself", async () => {
  const app = await start({ access: access.admin }, "production");
  expect((await app.fetch("/openapi.json")).status).toBe(401);
  const response = await app.fetch("/openapi.json", {
    as: { id: "ann", tenantId: "acme", roles: ["admin"] },
  });
  const { paths } = (await response.json()) as { paths: Readonly<Record<string, object>> };
  expect(paths["/openapi.json"]).toMatchObject({
    get: {
      security: [{ bearer: [] }],
      "x-keelson-access": "admin",
      responses: { 200: {}, 304: {} },
    },
  });
});

test.each([
  [{ access: "admin" }, "openapi.access", "use a rule of `access`"],
  [{ title: "" }, "openapi.title", "use a string of 1 to 200 characters"],
  [{ version: 1 }, "openapi.version", "use a string of 1 to 200 characters"],
  [{ path: "/docs" }, "openapi.path", "known are access, title, version"],
  [true, "openapi", "pass an object"],
])("the option %j is refused", (openapi, key, fix) => {
  expect(() => buildServer({ features: [], openapi: openapi as never })).toThrow(
    expect.objectContaining({ problems: [expect.objectContaining({ key, fix })] }) as BootError,
  );
});
