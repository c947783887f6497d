// Who a chain of messages acts for: the system only where a run of the system began it.
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import type { SharedEvent } from "../../parts/messages/envelope.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { rebuild } from "./rebuild.ts";

const about = z.object({ by: z.string() });

declare module "../../base/types/names.ts" {
  interface Events {
    "chain.begun": z.output<typeof about>;
    "chain.continued": z.output<typeof about>;
  }
  interface Jobs {
    "chains.chain.work": z.input<typeof about>;
    "chains.chain.remind": z.input<typeof about>;
    "chains.chain.hand-over": z.input<typeof about>;
    "chains.chain.equal": z.input<typeof about>;
  }
  interface Channels {
    "chain-wall": { by: string };
  }
  interface Writes {
    "chains.chain.begin": Write<typeof about, z.ZodUnknown>;
  }
}

let seen: string[] = [];
/** Notes whether a part of a chain may do what is the system's. */
async function attempt(ctx: PipelineContext, part: string, by: string): Promise<void> {
  const verdict = async (call: () => unknown) => {
    try {
      await call();
      return "allowed";
    } catch (error) {
      return (error as Error).name;
    }
  };
  const crossed = await verdict(() =>
    ctx.acrossTenants("a test").send(new ScanCommand({ TableName: chains.table.name, Limit: 1 })),
  );
  seen.push(`${by}: ${part} ${crossed}`);
}

/** Begins a chain of each kind. */
async function begin(ctx: PipelineContext, by: string): Promise<void> {
  await ctx.publish("chain.begun", { by });
  await ctx.enqueue("chains.chain.remind", { by }, { delaySeconds: 1 });
}

const chains = defineFeature("chains", (r) => {
  const table = r.table("rows", { partitionKey: "pk", tenant: true });
  r.event("chain.begun", about, { keep: true });
  r.event("chain.continued", about);
  r.on("chain.begun", {
    name: "follow",
    handler: async (ctx, { payload: { by } }) => {
      await attempt(ctx, "event", by);
      await ctx.enqueue("chains.chain.work", { by });
    },
  });
  r.job("chain.work", {
    input: about,
    handler: async (ctx, { by }) => {
      await attempt(ctx, "job", by);
      await ctx.publish("chain.continued", { by });
      await ctx.delivery.send("chain-wall", { by });
    },
  });
  r.on("chain.continued", {
    name: "pass-on",
    handler: async (ctx, { payload: { by } }) => {
      await attempt(ctx, "second event", by);
      const handed = ctx.enqueue("chains.chain.hand-over", { by }, { tenantId: "acme" });
      seen.push(
        `${by}: for a tenant ${await handed.then(
          () => "allowed",
          (error: Error) => error.name,
        )}`,
      );
    },
  });
  r.job("chain.hand-over", {
    input: about,
    handler: (ctx, { by }) => attempt(ctx, `job of ${ctx.user.tenantId}`, by),
  });
  r.job("chain.remind", {
    input: about,
    handler: (ctx, { by }) => attempt(ctx, "delayed job", by),
  });
  r.job("chain.equal", {
    input: about,
    dedupKey: () => "equal",
    handler: (ctx, { by }) => attempt(ctx, "equal job", by),
  });
  r.channel("chain-wall", { input: about, send: (ctx, { by }) => attempt(ctx, "delivery", by) });
  r.projection("chain.count", {
    version: 1,
    on: {
      "chain.begun": async (ctx, { payload: { by } }) => {
        await attempt(ctx as PipelineContext, "projection", by);
        return [];
      },
    },
  });
  r.write("chain.begin", {
    route: "POST /chains",
    access: access.everyone,
    input: about,
    handler: (ctx, { by }) => begin(ctx, by),
  });
  r.write("chain.repeat", {
    route: "POST /equals",
    access: access.everyone,
    input: about,
    handler: (ctx, { by }) => ctx.enqueue("chains.chain.equal", { by }),
  });
  r.write("chain.tell", {
    route: "POST /tellings",
    access: access.everyone,
    input: about,
    handler: (ctx, { by }) => ctx.delivery.send("chain-wall", { by }, { key: "today" }),
  });
  r.hook("chains.chain.begin", {
    before: (ctx, { by }) => attempt(ctx as PipelineContext, "hook", by),
  });
  r.schedule("chain.nightly", {
    cron: "0 3 * * *",
    handler: async (ctx) => {
      await attempt(ctx, "schedule", "schedule");
      await begin(ctx, "schedule");
    },
  });
  return { table };
});

const server = buildServer({ features: [chains] });
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());
beforeEach(() => {
  seen = [];
});

const allParts = ["event", "projection", "job", "delivery", "second event", "delayed job"];
const verdicts = (by: string, verdict: string) =>
  allParts.map((part) => `${by}: ${part} ${verdict}`);

/** Lets all come to its end that is due within two seconds. */
async function settled(): Promise<void> {
  await app.settled();
  app.clock.advance(2_000);
  await app.settled();
}

test("an anonymous request's runs and messages never cross tenants or enqueue for one", async () => {
  expect((await app.fetch("/chains", { body: { by: "anonymous" } })).status).toBe(204);
  await settled();
  const refused = ["hook", ...allParts].map((part) => `anonymous: ${part} AccessDeniedError`);
  expect(seen.sort()).toEqual([...refused, "anonymous: for a tenant AccessDeniedError"].sort());
  const messages = [...app.events, ...app.jobs];
  expect(messages.length).toBeGreaterThan(3);
  for (const message of messages) expect(message.originator).toBeUndefined();
});

test("everything a schedule causes belongs to the system, except jobs it enqueues for a tenant", async () => {
  app.clock.advance(86_400_000);
  await settled();
  const handed = ["schedule: for a tenant allowed", "schedule: job of acme AccessDeniedError"];
  expect(seen.sort()).toEqual(
    [...verdicts("schedule", "allowed"), "schedule: schedule allowed", ...handed].sort(),
  );
  expect(app.events.at(-1)).toMatchObject({ originator: "system" });
  expect(app.jobs.find(({ tenantId }) => tenantId === "acme")).toMatchObject({
    originator: "system",
  });
});

test("a run without a request belongs to the system when it has no tenant", async () => {
  await server.run({ reason: "a test" }, (ctx) => begin(ctx, "script"));
  await server.run({ reason: "a test", tenantId: "acme", roles: ["systemAdmin"] }, (ctx) =>
    begin(ctx, "script of acme"),
  );
  await settled();
  const of = (by: string) => seen.filter((line) => line.startsWith(`${by}: `)).sort();
  const handed = ["script: for a tenant allowed", "script: job of acme AccessDeniedError"];
  expect(of("script")).toEqual([...verdicts("script", "allowed"), ...handed].sort());
  const refused = verdicts("script of acme", "AccessDeniedError");
  expect(of("script of acme")).toEqual(
    [...refused, "script of acme: for a tenant AccessDeniedError"].sort(),
  );
});

test("a message without an originator, as of an older version, does not belong to the system", async () => {
  const event = {
    kind: "shared",
    type: "chain.continued",
    payload: { by: "older" },
    causedBy: "r1",
    origRequestId: "r1",
  } as const;
  expect(await app.deliver({ ...event, eventId: "older-1" })).toBe("processed");
  expect(
    await app.deliver({
      ...event,
      eventId: "newer-1",
      payload: { by: "newer" },
      originator: "system",
    }),
  ).toBe("processed");
  const forged = { ...event, eventId: "forged-1", originator: "root" } as unknown as SharedEvent;
  await expect(app.deliver(forged)).rejects.toThrow('originator is not "system"');
  await settled();
  expect(seen).toEqual([
    "older: second event AccessDeniedError",
    "older: for a tenant AccessDeniedError",
    "newer: second event allowed",
    "newer: for a tenant allowed",
    "newer: job of acme AccessDeniedError",
  ]);
});

test("an anonymous request's job does not replace an equal job of the system", async () => {
  await app.fetch("/equals", { body: { by: "anonymous" } });
  await server.run({ reason: "a test" }, (ctx) =>
    ctx.enqueue("chains.chain.equal", { by: "script" }),
  );
  await server.run({ reason: "a test" }, (ctx) =>
    ctx.enqueue("chains.chain.equal", { by: "script again" }),
  );
  await settled();
  expect(seen.sort()).toEqual([
    "anonymous: equal job AccessDeniedError",
    "script: equal job allowed",
  ]);
});

test("an anonymous request's delivery does not replace one of the system with the same key", async () => {
  await app.fetch("/tellings", { body: { by: "anonymous" } });
  await settled();
  for (const by of ["script", "script again"])
    await server.run({ reason: "a test" }, (ctx) =>
      ctx.delivery.send("chain-wall", { by }, { key: "today" }),
    );
  await settled();
  expect(seen).toEqual(["anonymous: delivery AccessDeniedError", "script: delivery allowed"]);
});

test("a kept event is replayed with the originator that published it", async () => {
  const runtime = await serverInternals(server).bound?.();
  const projection = runtime?.server.registry.projections.get("chain.count");
  if (runtime === undefined || projection === undefined)
    throw new Error("the server runs, and has a projection");
  await rebuild(runtime, { projection });
  expect(seen).toContain("anonymous: projection AccessDeniedError");
  expect(seen).toContain("schedule: projection allowed");
});
