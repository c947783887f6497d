import { afterAll, beforeAll, expect, test } from "vitest";
import { FrameworkError, NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

let error: Error;
const notes = defineFeature("notes", (r) => {
  const { number } = r.config({
    keys: {
      number: createTenantConfig("number", { default: 1, computed: () => Promise.reject(error) }),
    },
  });
  r.query("note.list", {
    route: "GET /notes",
    access: access.everyone,
    rateLimit: { per: "tenant", requests: number, window: "hour" },
    handler: async () => ({}),
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app.close());

const unavailable = () => app.logs.filter(({ msg }) => msg === "rate.unavailable").length;

test.each<[string, Error]>([
  ["the configuration", new FrameworkError("config_unavailable", "not at the moment")],
  ["another table", Object.assign(new Error("too many"), { $metadata: {} })],
])("a limit whose number needs %s, which fails, is an outage", async (_, failure) => {
  error = failure;
  app.clock.advance(3_600_000);
  const before = unavailable();
  expect((await app.fetch("/notes")).status).toBe(200);
  expect(unavailable()).toBe(before + 1);
});

test.each<[string, Error, number]>([
  ["a mistake", new TypeError("the table is not among the tables that it uses"), 500],
  ["an error of the client", new NotFoundError("plan", "gold"), 404],
])("a limit whose number fails with %s fails its request", async (_, failure, status) => {
  error = failure;
  const before = unavailable();
  expect((await app.fetch("/notes")).status).toBe(status);
  expect(unavailable()).toBe(before);
});
