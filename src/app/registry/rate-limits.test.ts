import { expect, test } from "vitest";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { allRates, ratesOf } from "./rate-limits.ts";

const limit = { per: "tenant", requests: 1, window: "minute" } as const;
const notes = defineFeature(
  "notes",
  (r) => {
    const { perDay } = r.config({ keys: { perDay: createTenantConfig("number", {}) } });
    r.rateLimit("sms", { per: "user", requests: perDay as never, window: "day" });
    const route = { access: access.everyone, handler: async () => ({}) };
    r.query("note.list", { route: "GET /notes", ...route });
    r.query("note.show", {
      ...{ route: "GET /notes/:id", ...route },
      rateLimit: [
        { ...limit, name: "tenant-minute" },
        { ...limit, requests: perDay as never },
        { ...limit, per: () => "a" },
      ],
    });
  },
  { rateLimit: limit },
);

test("a route has the limits of the server, of its feature and its own, each with a name", () => {
  const server = serverInternals(buildServer({ features: [notes], rateLimit: limit }));
  const own = server.registry.handlers.get("notes.note.show");
  const feature = { feature: "keelson", name: "keelson.health.live", rateLimit: undefined };
  expect(own && ratesOf(server, own).map(({ name, facts }) => [name, facts.id, facts.key])).toEqual(
    [
      ["tenant-minute", "server tenant-minute", undefined],
      ["tenant-minute-2", "notes tenant-minute-2", undefined],
      ["tenant-minute-3", "notes.note.show tenant-minute-3", undefined],
      ["per-day", "notes.note.show per-day", "notes:config:per-day"],
      ["own-minute", "notes.note.show own-minute", undefined],
    ],
  );
  expect(ratesOf(server, feature)).toEqual([]);
  expect(allRates(server).map(({ facts }) => facts.id)).toEqual([
    "server tenant-minute",
    "notes tenant-minute-2",
    "notes.note.show tenant-minute-3",
    "notes.note.show per-day",
    "notes.note.show own-minute",
    "notes.sms",
  ]);
});

test("invalid limits are reported with their place", () => {
  const wrong = { per: "team", requests: 1, window: "day" } as never;
  const bad = defineFeature(
    "bad",
    (r) => {
      r.rateLimit("Sms", wrong);
      r.rateLimit("twice", limit);
      r.rateLimit("twice", limit);
      r.rateLimit("none", undefined as never);
      r.rateLimit("list", [limit] as never);
      r.rateLimit("empty", [] as never);
      r.rateLimit("named", { ...limit, name: "other" } as never);
      r.query("note.list", {
        ...{ route: "GET /notes", access: access.everyone, handler: async () => ({}) },
        rateLimit: wrong,
      });
    },
    { rateLimit: wrong },
  );
  let message = "";
  try {
    buildServer({ features: [bad], rateLimit: wrong });
  } catch (error) {
    message = String(error);
  }
  const lines = message.split("\n").map((line) => line.replace(/ \(.*#/, " #").replace(/\)$/, ""));
  expect(lines.slice(1).map((line) => line.trim().replace(/;.*#/, " #"))).toEqual([
    'rateLimit.per: "team" is not allowed #option-type',
    "bad.Sms: Sms is not in kebab case #limit-name",
    'bad.Sms.per: "team" is not allowed #option-type',
    "bad.none: it is not an object #option-type",
    "bad.list: it is not an object #option-type",
    "bad.empty: it is not an object #option-type",
    'bad.named.name: unknown option "name" #unknown-option',
    'bad.note.list.rateLimit.per: "team" is not allowed #option-type',
    'rateLimit.per: "team" is not allowed #option-type',
    "bad.twice: this limit is declared twice #duplicate-limit",
  ]);
});
