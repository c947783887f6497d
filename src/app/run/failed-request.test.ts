import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { ConflictError, NotFoundError, PipelineError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

let thrown: unknown;
const everyone = { access: access.everyone };
const handler = async (): Promise<never> => {
  throw thrown;
};
const shop = defineFeature("shop", (r) => {
  r.query("item.show", {
    route: "GET /items",
    ...everyone,
    errors: { out_of_stock: 409, pipeline_error: 503 },
    handler,
  });
  r.write("item.buy", { route: "POST /items", ...everyone, handler });
});
const server = (environment?: "production") =>
  buildServer({ features: [shop], ...(environment && { environment }) });

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());

let requests = 0;
/** What is warned of when an error is answered: its code and status. */
async function warned(error: unknown, method = "GET", of = app): Promise<unknown[]> {
  thrown = error;
  const requestId = `request-${++requests}`;
  await of.fetch("/items", { method, headers: { "x-request-id": requestId } });
  return of.logs
    .filter((line) => line["requestId"] === requestId && line["msg"] === "error.undeclared")
    .map(({ level, handler, error, status, fix }) => ({ level, handler, error, status, fix }));
}

test.each<[string, unknown]>([
  ["a declared code with its status", new ConflictError("out_of_stock")],
  ["a declared pipeline_error with its status", new PipelineError("late", 503)],
  ["a code of keelson's own", new NotFoundError("item", "1")],
  ["what is no typed error", new Error("broken")],
  [
    "what the container's parser answers",
    new PipelineError("slow", 408, { code: "malformed_request" }),
  ],
])("does not warn about %s", async (_, error) => {
  expect(await warned(error)).toEqual([]);
});

test.each<[string, unknown, string, number]>([
  ["a code that nobody declares", new ConflictError("sold"), "sold", 409],
  [
    "a declared code with another status",
    new PipelineError("late", 410, { code: "out_of_stock" }),
    "out_of_stock",
    410,
  ],
  [
    "a declared pipeline_error with another status",
    new PipelineError("late", 500),
    "pipeline_error",
    500,
  ],
  ["a code of keelson's own with another status", new ConflictError("timeout"), "timeout", 409],
  ["a name that every object has", new ConflictError("constructor"), "constructor", 409],
  [
    "a code of keelson's own that a query does not have",
    new ConflictError("request_in_progress"),
    "request_in_progress",
    409,
  ],
  [
    "a code of keelson's own that no operation has",
    new PipelineError("slowly", 429, { code: "too_many_requests" }),
    "too_many_requests",
    429,
  ],
])("warns once per process about %s", async (_, error, code, status) => {
  const fix = `declare it: errors: { ${code}: ${status} }`;
  expect(await warned(error)).toEqual([
    { level: "warn", handler: "shop.item.show", error: code, status, fix },
  ]);
  expect(await warned(error)).toEqual([]);
});

test("warns for each handler separately, also when code calls it", async () => {
  expect(await warned(new ConflictError("dear"))).toHaveLength(1);
  expect(await warned(new ConflictError("dear"), "POST")).toMatchObject([
    { handler: "shop.item.buy" },
  ]);

  thrown = new ConflictError("dearer");
  await expect(app.call("shop.item.buy")).rejects.toThrow("dearer");
  expect(app.logs).toContainEqual(
    expect.objectContaining({ msg: "error.undeclared", error: "dearer", handler: "shop.item.buy" }),
  );
});

test("does not warn about errors that keelson declares", async () => {
  const before = app.logs.length;
  await app.fetch("/nowhere");
  await app.fetch("/config/effective/none");
  expect(app.logs.slice(before).filter(({ msg }) => msg === "error.undeclared")).toEqual([]);
});

test("never warns in production", async () => {
  const live = await startTestApp(server("production"));
  try {
    expect(await warned(new ConflictError("sold"), "GET", live)).toEqual([]);
  } finally {
    await live.close();
  }
});

test("remembers a bounded number of codes, as they may contain data", async () => {
  const own = await startTestApp(server());
  try {
    for (let index = 0; index < 1_000; index++) {
      thrown = new ConflictError(`sold_${index}`);
      await own.call("shop.item.buy").catch(() => undefined);
    }
    expect(await warned(new ConflictError("one_more"), "GET", own)).toEqual([]);
  } finally {
    await own.close();
  }
});

test("warns once per process about a success with an undeclared status", async () => {
  const mugs = defineFeature("mugs", (r) => {
    const input = z.object({ status: z.coerce.number() });
    const handler = async (_: unknown, { status }: { readonly status: number }) =>
      reply(status === 303 ? undefined : {}, { status });
    r.query("mug.show", { route: "GET /mugs", ...everyone, input, handler });
    r.write("mug.add", { route: "POST /mugs", ...everyone, input, status: [201, 303], handler });
  });
  const shown = await startTestApp(buildServer({ features: [mugs] }));
  const hidden = await startTestApp(buildServer({ features: [mugs], environment: "production" }));
  try {
    for (const status of [200, 204, 404, 302, 302])
      await shown.fetch(`/mugs?status=${status}`, { redirect: "manual" } as never);
    for (const status of [201, 303, 202])
      await shown.fetch(`/mugs?status=${status}`, { method: "POST" });
    await hidden.fetch("/mugs?status=206");
    const warnings = [...shown.logs, ...hidden.logs].filter(
      ({ msg }) => msg === "status.undeclared",
    );
    expect(warnings.map(({ handler, status, fix }) => ({ handler, status, fix }))).toEqual([
      { handler: "mugs.mug.show", status: 302, fix: "declare it: status: 302" },
      { handler: "mugs.mug.add", status: 202, fix: "declare it: status: [201,303,202]" },
    ]);
  } finally {
    await Promise.all([shown.close(), hidden.close()]);
  }
});
