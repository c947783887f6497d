import { expect, test } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import type { AuthOptions } from "../../base/identity/auth-options.ts";
import { needsOf } from "./needs.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "spoon.bent": Record<string, never>;
  }
}

const spoons = defineFeature("spoons", (r) => {
  r.table("spoons", { partitionKey: "id", tenant: false });
  r.event("spoon.bent", z.object({}));
  r.on("spoon.bent", { name: "straighten", handler: async () => undefined });
  r.on("spoon.bent", { name: "replace", handler: async () => undefined });
});
const server = serverInternals(buildServer({ features: [spoons], dynamodb: { prefix: "my.app" } }));

test("needs the names that the server itself uses, and each consumed event type once", () => {
  const { tables, events, jobs, bus } = needsOf(server);
  expect(tables.map(({ tableName }) => tableName)).toEqual(
    ["config", "once", "outbox", "spoons"].map((name) => `my.app-${name}`),
  );
  expect([events?.name, events?.deadName, events?.isOrdered]).toEqual([
    "my-app-events",
    "my-app-events-dead",
    false,
  ]);
  expect([jobs?.name, jobs?.deadName, jobs?.isOrdered]).toEqual([
    "my-app-jobs.fifo",
    "my-app-jobs-dead.fifo",
    true,
  ]);
  expect(bus).toEqual({
    name: "my.app",
    variable: "KEELSON_EVENT_BUS",
    isFair: false,
    source: "my.app",
    rule: { name: "my-app-events", pattern: { source: ["my.app"] }, targetId: "events" },
    consumed: ["spoon.bent"],
  });
});

test("names the SSM parameters that the server reads, if any", () => {
  const { options } = server;
  expect(needsOf(server).parameters).toEqual({ overrides: undefined, keyRing: undefined });
  const reading = {
    ...server,
    options: { ...options, ssm: { path: "/app" }, keyRing: { parameter: "/ring" } },
  };
  expect(needsOf(reading).parameters).toEqual({ overrides: "/app", keyRing: "/ring" });
});

test("tokens are verified with a secret from the environment unless the server configures another way", () => {
  expect(needsOf(server).hasAuthSecret).toBe(true);
  const auth = { jwks: "https://id.example.com/keys", audience: "spoons" };
  expect(needsOf(serverInternals(buildServer({ features: [spoons], auth }))).hasAuthSecret).toBe(
    false,
  );
});

test("API keys leave tokens to the environment, and make the table of claims permanent", () => {
  const needs = (auth: AuthOptions) =>
    needsOf(serverInternals(buildServer({ features: [spoons], auth })));
  const claims = ({ tables }: ReturnType<typeof needs>) =>
    tables.find(({ name }) => name === "once")?.isLasting;
  expect(needs({ apiKeys: true }).hasAuthSecret).toBe(true);
  expect(needs({ apiKeys: true, secret: "s".repeat(32) }).hasAuthSecret).toBe(false);
  expect(needs({ resolve: () => undefined }).hasAuthSecret).toBe(false);
  expect(claims(needs({ apiKeys: true }))).toBe(true);
  expect(claims(needs({ secret: "s".repeat(32) }))).toBe(false);
  expect(claims(needsOf(server))).toBe(false);
});

test("registered tenants make the table of claims permanent", () => {
  const { tables } = needsOf(serverInternals(buildServer({ features: [spoons], tenants: true })));
  expect(tables.find(({ name }) => name === "once")?.isLasting).toBe(true);
});

test("a server is isolated if it sets the option and has tenants' rows", () => {
  const forks = defineFeature("forks", (r) => {
    r.table("forks", { partitionKey: "id", tenant: true });
  });
  const isIsolated = (feature: typeof forks, more: object) =>
    needsOf(serverInternals(buildServer({ features: [feature], ...more }))).isIsolated;
  expect([
    isIsolated(forks, {}),
    isIsolated(spoons, { isolation: {} }),
    isIsolated(forks, { isolation: {} }),
  ]).toEqual([false, false, true]);
});

test("variables override names, and a queue's variable may be its URL", () => {
  const env = {
    KEELSON_TABLE_SPOONS: "cutlery",
    KEELSON_EVENT_QUEUE: "https://sqs.eu-west-1.amazonaws.com/1/all-events",
    KEELSON_EVENT_BUS: "shared",
  };
  const { tables, events, bus } = needsOf(server, { env });
  expect(tables.at(-1)).toMatchObject({ tableName: "cutlery", variable: "KEELSON_TABLE_SPOONS" });
  expect([events?.name, events?.deadName]).toEqual([env.KEELSON_EVENT_QUEUE, "all-events-dead"]);
  expect([bus?.name, bus?.source]).toEqual(["shared", "my.app"]);
});

test("a different prefix changes only names", () => {
  const { tables, bus } = needsOf(server, { prefix: "stage" });
  expect([tables[0].tableName, bus?.name, bus?.source, bus?.rule.name]).toEqual([
    "stage-config",
    "stage",
    "my.app",
    "my-app-events",
  ]);
});

test("a server with kept events needs a table for them, whose rows belong to tenants and expire", () => {
  const needed = (options: { keepDays: number } | undefined) => {
    const feature = defineFeature(
      "spoons",
      (r) => void r.event("spoon.bent", z.object({}), options),
    );
    return needsOf(serverInternals(buildServer({ features: [feature] }))).tables.find(
      ({ name }) => name === "kept-events",
    );
  };
  expect(needed(undefined)).toBeUndefined();
  expect(needed({ keepDays: 30 })).toMatchObject({
    tableName: "keelson-kept-events",
    variable: "KEELSON_TABLE_KEPT_EVENTS",
    tenant: true,
    timeToLive: "expiration",
    isLasting: true,
  });
});
