import { expect, test } from "vitest";
import { BootError } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig, createUserConfig } from "../../parts/config/declare/declaration.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "./server.ts";

const declaration = createTenantConfig("number", { default: 100 });
const plans = defineFeature("plans", (r) => ({
  config: r.config({
    keys: {
      perMinute: declaration,
      own: createUserConfig("number", { default: 1 }),
    },
  }),
}));
const handler = async () => ({});
const route = { access: access.everyone, handler };
const limited = { per: "tenant", window: "minute" } as const;

/** A feature whose limits have this number, each in another place. */
const notesWith = (requests: never) =>
  defineFeature(
    "notes",
    (r) => {
      r.query("note.list", { route: "GET /notes", ...route, rateLimit: { ...limited, requests } });
      r.query("note.show", {
        route: "GET /notes/:id",
        ...route,
        rateLimit: [
          { ...limited, requests: 5 },
          { ...limited, requests, name: "second" },
        ],
      });
      r.rateLimit("sms", { ...limited, requests });
      r.quota("storage", { limit: requests, window: "day" });
    },
    { rateLimit: { ...limited, requests } },
  );

function problemsOf(build: () => unknown): string[] {
  try {
    build();
    return [];
  } catch (error) {
    if (!(error instanceof BootError)) throw error;
    return error.problems.map(({ key, rule, message }) => `${key} ${rule}: ${message}`);
  }
}

test("a rate limit and a quota may have a key of any feature of the server, a rate limit per user also a user's", () => {
  const { perMinute, own } = plans.config;
  const rateLimit = { ...limited, requests: perMinute };
  const features = [plans, notesWith(perMinute as never)];
  expect(problemsOf(() => buildServer({ features, rateLimit }))).toEqual([]);
  const users = { ...limited, per: "user", requests: own } as const;
  expect(problemsOf(() => buildServer({ features: [plans], rateLimit: users }))).toEqual([]);
});

test.each([
  ["tenant", "tenant"],
  ["address", "ip"],
  ["server", "all"],
  ["result of a function", () => "one"],
] as const)(
  "a rate limit per %s does not boot with a user's key, because a user could raise the limit of others",
  (_, per) => {
    const rateLimit = { ...limited, per, requests: plans.config.own };
    const notes = defineFeature("notes", (r) => {
      r.query("note.list", { route: "GET /notes", ...route, rateLimit });
      r.rateLimit("sms", rateLimit);
    });
    const wrong = `limit-key: "plans:config:own" is not a number key of this server that users share`;
    expect(problemsOf(() => buildServer({ features: [plans, notes], rateLimit })).sort()).toEqual([
      `notes.note.list ${wrong}`,
      `notes.sms ${wrong}`,
      `rateLimit ${wrong}`,
    ]);
  },
);

test.each([
  ["of a feature that the server does not have", plans.config.perMinute, "plans:config:per-minute"],
  ["as its declaration, not its handle", declaration, "a declaration"],
])("a rate limit or a quota with a key %s does not boot", (_, requests, named) => {
  const features = [notesWith(requests as never)];
  const rateLimit = { ...limited, requests: requests as never };
  const known = `limit-key: "${named}" is not a number key of this server`;
  const wrong = `${known} that users share`;
  expect(problemsOf(() => buildServer({ features, rateLimit })).sort()).toEqual([
    `notes ${wrong}`,
    `notes.note.list ${wrong}`,
    `notes.note.show ${wrong}`,
    `notes.sms ${wrong}`,
    `notes.storage ${known}`,
    `rateLimit ${wrong}`,
  ]);
});

test("a rate limit of a handler without a route does not boot, because no request reaches it", () => {
  const loose = defineFeature("loose", (r) => {
    r.write("note.add", { handler, rateLimit: { ...limited, requests: 1 } });
  });
  expect(problemsOf(() => buildServer({ features: [loose] }))).toEqual([
    "loose.note.add rate-limit-without-route: `rateLimit` is set without a `route`",
  ]);
});

test.each([[["day"]], [Object.create(null)]])("a quota's window may not be %j", (window) => {
  const feature = defineFeature("notes", (r) => {
    r.quota("storage", { limit: 1, window: window as never });
  });
  expect(problemsOf(() => buildServer({ features: [feature] }))).toEqual([
    expect.stringMatching(/^quota storage quota-window/),
  ]);
});
