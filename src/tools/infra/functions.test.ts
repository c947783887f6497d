import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineFeature, type Feature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import { functionsOf, type Shape } from "./functions.ts";
import { needsOf } from "./needs.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "fork.lost": Record<string, never>;
  }
  interface Writes {
    "writer.fork.count-all": { input: unknown; accepted: unknown; output: unknown };
  }
}

const everyone = { access: access.everyone, handler: async () => 1 };
const forks = defineFeature("forks", (r) => {
  r.table("forks", { partitionKey: "pk", tenant: false });
  r.query("fork.show", { route: "GET /forks/:forkId", ...everyone });
  r.query("fork.inner", { handler: async () => 1 });
});
const writer = defineFeature(
  "writer",
  (r) => {
    r.table("ledger", { partitionKey: "pk", tenant: false });
    r.write("fork.count-all", { route: "POST /forks", ...everyone });
  },
  { uses: { forks: "read", drawers: "write" } },
);
const drawers = defineFeature(
  "drawers",
  (r) => void r.table("drawers", { partitionKey: "pk", tenant: false }),
);
const root = defineFeature(
  "root",
  (r) => void r.query("root.show", { route: "GET /", ...everyone }),
);

function functions(features: readonly Feature[], shape: Shape = "one", options: object = {}) {
  const server = serverInternals(buildServer({ features, ...options }));
  return functionsOf(server, needsOf(server), shape).map(({ tables, duties, ...others }) => ({
    ...others,
    duties: [...duties],
    tables: tables.map(({ table, reach }) => `${reach} ${table.name}`),
  }));
}
const names = (...given: Parameters<typeof functions>) =>
  functions(...given).map(({ name }) => name);

describe("the functions of a server", () => {
  test("are only those that its declarations need", () => {
    expect(names([forks])).toEqual(["http"]);
    const jobs = defineFeature(
      "jobs",
      (r) => void r.job("fork.wash", { input: z.object({}), handler: async () => 1 }),
    );
    expect(names([jobs])).toEqual(["http", "queue", "sweep"]);
    expect(functions([jobs, forks, drawers, writer]).map(({ duties }) => duties)).toEqual([
      ["claim", "steps", "later", "enqueue"],
      ["claim", "steps", "later", "enqueue", "consume"],
      ["claim", "send-due"],
    ]);
    const events = defineFeature("events", (r) => void r.event("fork.lost", z.object({})));
    expect(names([events])).toEqual(["http", "queue", "stream", "sweep"]);
    const schedules = defineFeature("nights", (r) =>
      r.schedule("fork.count", { cron: "0 3 * * *", handler: async () => 1 }),
    );
    expect(names([schedules])).toEqual(["http", "schedule"]);
    const ofTenants = defineFeature("nights", (r) =>
      r.schedule("fork.count", { cron: "0 3 * * *", for: "tenants", handler: async () => 1 }),
    );
    expect(
      functions([ofTenants], "one", { tenants: true }).map(({ name, duties }) => [name, duties]),
    ).toEqual([
      ["http", ["read-tenants"]],
      ["queue", ["claim", "steps", "later", "enqueue", "consume", "read-tenants"]],
      ["sweep", ["claim", "send-due"]],
      ["schedule", ["claim", "steps", "later", "enqueue", "read-tenants"]],
    ]);
  });

  test("are one for each handler with a route, named like its export, and one for the default route", () => {
    const all = functions([forks, writer, drawers], "each");
    expect(all.map(({ name, routes }) => [name, ...routes])).toEqual([
      ["forksForkShow", "GET /forks/{forkId}", "HEAD /forks/{forkId}"],
      ["writerForkCountAll", "POST /forks"],
      ["http", "$default"],
    ]);
    expect(
      all.every(({ calledBy, timeoutSeconds }) => calledBy === "requests" && timeoutSeconds === 20),
    ).toBe(true);
  });

  test.each([
    [undefined, ["GET /", "HEAD /"]],
    ["/api", ["GET /api", "HEAD /api"]],
  ])("answer at the root below the base path %j", (basePath, routes) => {
    expect(
      functions([root], "each", basePath === undefined ? {} : { basePath })[0]?.routes,
    ).toEqual(routes);
  });

  test("reach the tables of their own features and of the features these use", () => {
    const each = functions([forks, writer, drawers], "each");
    expect(each.map(({ tables }) => tables)).toEqual([
      ["query forks"],
      ["check forks", "write ledger", "write drawers"],
      [],
    ]);
    expect(functions([forks, writer, drawers]).map(({ tables }) => tables)).toEqual([
      ["check forks", "write ledger", "write drawers"],
    ]);
  });

  test("may only read the tables of a query, even if its feature may write them", () => {
    const reader = defineFeature(
      "reader",
      (r) => void r.query("fork.read", { route: "GET /read", ...everyone }),
      {
        uses: { drawers: "write" },
      },
    );
    expect(functions([drawers, reader], "each")[0]?.tables).toEqual(["query drawers"]);
  });

  test("of a write reach the tables of the features that hook into it", () => {
    const auditor = defineFeature("auditor", (r) => {
      r.table("audits", { partitionKey: "pk", tenant: false });
      r.hook("writer.fork.count-all", { after: async () => undefined });
    });
    const [, counting, http] = functions([forks, writer, drawers, auditor], "each");
    expect([counting?.name, counting?.tables.at(-1)]).toEqual([
      "writerForkCountAll",
      "write audits",
    ]);
    expect(http?.tables).toEqual([]);
    expect(functions([forks, writer, drawers, auditor])[0]?.tables).toContain("write audits");
  });

  test("for queues and schedules write only the tables of the features that they run", () => {
    const consumer = defineFeature("consumer", (r) => {
      r.table("seen", { partitionKey: "pk", tenant: false });
      r.event("fork.lost", z.object({}));
      r.on("fork.lost", { name: "note", handler: async () => undefined });
    });
    const sender = defineFeature("sender", (r) => {
      r.table("sent", { partitionKey: "pk", tenant: false });
      r.channel("pigeon", { input: z.object({}), send: async () => undefined });
    });
    const nights = defineFeature("nights", (r) => {
      r.table("nights", { partitionKey: "pk", tenant: false });
      r.schedule("night.count", { cron: "0 3 * * *", handler: async () => undefined });
    });
    const tables = new Map(
      functions([forks, consumer, sender, nights]).map((one) => [one.name, one.tables]),
    );
    expect(tables.get("queue")).toEqual(["write seen", "write sent"]);
    expect(tables.get("schedule")).toEqual(["write nights"]);
    expect([tables.get("stream"), tables.get("sweep")]).toEqual([[], []]);
  });

  test("may claim, publish and enqueue if they can write, but not if they only read", () => {
    const events = defineFeature("events", (r) => void r.event("fork.lost", z.object({})));
    const keys = defineFeature("keys", (r) => {
      r.config({ keys: { most: createTenantConfig("number", {}) } });
    });
    const effects = ["claim", "steps", "publish", "later", "enqueue"];
    const each = new Map(
      functions([forks, writer, drawers, events], "each").map(({ name, duties }) => [name, duties]),
    );
    expect(each.get("forksForkShow")).toEqual([]);
    expect(each.get("writerForkCountAll")).toEqual(effects);
    expect(each.get("http")).toEqual([]);
    expect(each.get("queue")).toEqual([...effects, "consume"]);
    const mending = defineFeature("mending", (r) => {
      r.on(r.event("fork.bent", z.object({})), { name: "mend", handler: async () => undefined });
    });
    const queue = functions([mending]).find(({ name }) => name === "queue");
    expect(queue?.duties.slice(-2)).toEqual(["consume", "wait"]);
    expect(each.get("stream")).toEqual(["claim", "sweep-outbox", "read-stream"]);
    expect(each.get("sweep")).toEqual(["claim", "sweep-outbox", "send-due"]); // deliveries
    expect(functions([forks])[0]?.duties).toEqual([]);
    expect(functions([writer, forks, drawers])[0]?.duties).toEqual(["claim", "steps"]);
    expect(functions([forks, keys], "each").map(({ duties }) => duties)).toEqual([
      ["read-config"],
      ["read-config", "operate-config", "claim"],
    ]);
  });

  test("have names of limited length, and a handler with a longer name is refused", () => {
    const long = "a".repeat(25);
    const endless = defineFeature(
      "forks",
      (r) => void r.query(`${long}.${long}`, { route: "GET /", ...everyone }),
    );
    expect(() => names([endless], "each")).toThrow(
      /^the function of forks\.a+\.a+ would be forksA+, which .+ 40 characters; rename/i,
    );
    expect(names([endless], "one")).toEqual(["http"]);
  });
});
