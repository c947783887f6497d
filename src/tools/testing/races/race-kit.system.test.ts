import { setTimeout as sleep } from "node:timers/promises";
import { DynamoDBClient, GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  GetCommand,
  PutCommand,
  ScanCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../../app/features/feature.ts";
import type { PipelineContext } from "../../../app/handlers/pipeline-context.ts";
import { buildServer } from "../../../app/server/server.ts";
import { access } from "../../../base/identity/access.ts";
import { createTenantConfig } from "../../../parts/config/declare/declaration.ts";
import {
  CrashError,
  type RaceApp,
  RaceError,
  type RaceFrame,
  type RaceMove,
  type RaceScenario,
  raceEverywhere,
  startTestApp,
} from "../index.ts";

const never = new Promise<never>(() => {});
const seats = defineFeature("seats", (r) => {
  const table = r.table("seats", { partitionKey: "pk", tenant: true });
  const { authenticated } = access;
  const config = r.config({ keys: { most: createTenantConfig("number", { default: 1 }) } });
  const taken = r.event("seat.taken", z.object({ by: z.string() }));
  const remind = r.job("seat.remind", {
    input: z.object({ by: z.string() }),
    handler: async (ctx, { by }) => {
      await ctx.delivery.send("log", { text: by });
    },
  });
  r.on(taken, {
    name: "follow",
    handler: async (ctx, { payload: { by } }) => void (await ctx.enqueue(remind, { by })),
  });
  r.query("seat.read", {
    input: z.object({ times: z.number(), of: z.string() }),
    handler: async (ctx, { times, of }) => {
      const get = () => new GetCommand({ TableName: table.name, Key: table.key(ctx, of) });
      for (let time = 0; time < times; time += 1) await ctx.db.send(get());
      return {};
    },
  });
  r.query("seat.parallel", {
    handler: async (ctx) => {
      const Keys = [table.key(ctx, "a")];
      const get = () => new BatchGetCommand({ RequestItems: { [table.name]: { Keys } } });
      await Promise.all([get(), get(), get()].map((command) => ctx.db.send(command)));
      return {};
    },
  });
  const show = async (ctx: Parameters<typeof table.key>[0] & Pick<PipelineContext, "db">) => {
    const Key = table.key(ctx, "taken");
    const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
    return Number((await ctx.db.send(get)).Item?.["taken"] ?? 0);
  };
  r.write("seat.take", {
    route: "POST /seats",
    access: authenticated,
    handler: async (ctx) => {
      const before = await show(ctx);
      if (before >= (await ctx.config(config.most))) return { isTaken: false };
      const Item = { ...table.key(ctx, "taken"), taken: before + 1 };
      await ctx.db.send(new PutCommand({ TableName: table.name, Item }));
      return { isTaken: true };
    },
  });
  const update = (ctx: Parameters<typeof table.key>[0]) => ({
    TableName: table.name,
    Key: table.key(ctx, "taken"),
    UpdateExpression: "ADD taken :one",
    ExpressionAttributeValues: { ":one": 1 },
  });
  r.write("seat.add", {
    route: "POST /seats/add",
    access: authenticated,
    handler: async (ctx) => {
      await ctx.publish(taken, { by: String(ctx.user.id) });
      return ctx.commit([{ Update: update(ctx) }], { added: true });
    },
  });
  r.write("seat.careless", {
    route: "POST /seats/careless",
    access: authenticated,
    handler: async (ctx) => {
      await ctx.db.send(new UpdateCommand(update(ctx)));
      return {};
    },
  });
  r.query("seat.show", {
    route: "GET /seats",
    access: authenticated,
    output: z.looseObject({ taken: z.number() }),
    handler: async (ctx) => ({ taken: await show(ctx) }),
  });
});
const server = buildServer({ features: [seats] });
const key = { "idempotency-key": "k" };
const take = (app: RaceApp) => app.fetch("/seats", { body: {}, as: app.as() });
const add = (app: RaceApp) => app.fetch("/seats/add", { body: {}, as: app.as(), headers: key });
const takenOf = async (app: RaceApp) =>
  ((await (await app.fetch("/seats", { as: app.as() })).json()) as { taken: number }).taken;
const reading = (times: number, of: string) => (app: RaceApp) =>
  app.call("seats.seat.read", { times, of }, { as: app.as() });
const oneSeat: RaceScenario<RaceApp, Response> = {
  requests: [take, take],
  check: async (_app, results) => {
    let count = 0;
    for (const result of results)
      if (
        result.status === "fulfilled" &&
        JSON.stringify(await result.value.json()) === '{"isTaken":true}'
      )
        count += 1;
    expect(count).toBe(1);
  },
};
const failure = async (race: Promise<unknown>) => {
  const error = await race.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RaceError)) throw new Error("no race was found", { cause: error });
  return error;
};

test.each([
  [1, 1, 2],
  [1, 2, 3],
  [1, 3, 4],
  [1, 4, 5],
  [2, 2, 6],
  [2, 3, 10],
  [2, 4, 15],
  [3, 3, 20],
  [4, 3, 35],
  [4, 4, 70],
])("two requests of %i and %i calls have exactly %i orders", async (m, n, count) => {
  const seen = new Set<string>();
  let calls = "";
  const { orders, exhausted, byPreemptions } = await raceEverywhere(server, {
    requests: [reading(m, "a"), reading(n, "b")],
    preemptions: Number.POSITIVE_INFINITY,
    arrange: () => {
      calls = "";
    },
    invariant: (app) => {
      calls += app.logs.length;
    },
    check: () => void seen.add(calls),
  });
  expect([orders, exhausted]).toEqual([count, true]);
  expect(byPreemptions.reduce((sum, level) => sum + level)).toBe(count);
  expect(byPreemptions[0]).toBe(2); // one request after the other
});

test("orders with few preemptions come first, and the numbers of preemptions and orders are bounded", async () => {
  const race = { requests: [reading(3, "a"), reading(3, "b")], check: () => undefined };
  expect(await raceEverywhere(server, race)).toEqual({
    orders: 14,
    exhausted: true,
    byPreemptions: [2, 4, 8],
  });
  expect(await raceEverywhere(server, { ...race, preemptions: 0 })).toEqual({
    orders: 2,
    exhausted: true,
    byPreemptions: [2],
  });
  expect(await raceEverywhere(server, { ...race, orders: 3, walks: 5, seed: 7 })).toEqual({
    orders: 8,
    exhausted: false,
    byPreemptions: [2, 1, 0],
  });
});

test("random orders follow from the seed", async () => {
  const ordersOf = async (seed: number) => {
    const seen: string[] = [];
    const noting = (name: string) => async (app: RaceApp) => {
      for (let call = 0; call < 4; call += 1) {
        await reading(1, name)(app);
        seen.push(name);
      }
    };
    const requests = [noting("a"), noting("b")];
    const race = { requests, orders: 0, walks: 4, seed, check: () => undefined };
    expect((await raceEverywhere(server, race)).byPreemptions).toEqual([0, 0, 0]);
    return seen.join("");
  };
  const first = await ordersOf(1);
  expect(await ordersOf(1)).toBe(first);
  expect(await ordersOf(2)).not.toBe(first);
});

test("a request that waits for another one is blocked, so that the other one is not preempted", async () => {
  let called = Promise.withResolvers<void>();
  const lead = async (app: RaceApp) => {
    await reading(2, "a")(app);
    called.resolve();
  };
  const follow = async (app: RaceApp) => {
    await called.promise;
    await reading(1, "b")(app);
  };
  const { orders, byPreemptions } = await raceEverywhere(server, {
    requests: [lead, follow],
    arrange: () => {
      called = Promise.withResolvers();
    },
    check: () => undefined,
  });
  // `follow` starts before, between or after the calls of `lead`.
  expect([orders, byPreemptions]).toEqual([3, [2, 1, 0]]);
});

test("read-modify-write is found with its order as a table, and its replay fails in the same way", async () => {
  const error = await failure(raceEverywhere(server, oneSeat));
  expect(error.preemptions).toBe(1);
  expect(error.order).toHaveLength(error.replay.length);
  expect(error.message).toContain("with 1 preemption: expected 2 to be 1");
  expect(error.message).toMatch(/^actor {3}call +outcome$/m);
  expect(error.message).toMatch(/^take 2 {2}GetItem seats +done$/m);

  const replay = JSON.parse(JSON.stringify(error.replay)) as readonly RaceMove[];
  const again = await failure(raceEverywhere(server, { ...oneSeat, replay }));
  expect([again.order, again.replay]).toEqual([error.order, error.replay]);
  const harmless = { ...oneSeat, check: () => undefined, replay };
  expect(await raceEverywhere(server, harmless)).toEqual({
    orders: 1,
    exhausted: false,
    byPreemptions: [],
  });
});

test("a replay fails with the reason if the calls differ", async () => {
  const { replay } = await failure(raceEverywhere(server, oneSeat));
  const differently = (given: readonly RaceMove[]) =>
    raceEverywhere(server, { ...oneSeat, replay: given });
  await expect(
    raceEverywhere(server, { ...oneSeat, requests: [reading(1, "a"), take] as never, replay }),
  ).rejects.toThrow("raceEverywhere: the calls differ: move 1 was take 2: start, but now");
  await expect(differently(replay.slice(0, 2))).rejects.toThrow("move 3 was the end, but now");
  await expect(
    differently([...replay, { actor: "take 1", call: "GetItem seats", kind: "crash" }]),
  ).rejects.toThrow("was take 1: GetItem seats (crash), but now nothing is waiting");
});

test("commits of one key in two processes take effect once, whatever crashes, is lost, throttled or expires", async () => {
  const once: RaceScenario<RaceApp, Response> = {
    requests: [add, add],
    processes: 2,
    orders: 25,
    check: async (app, results) => {
      for (let attempt = 0; attempt < 5; attempt += 1) {
        await sleep(40_000); // of the race's clock
        if ((await add(app)).status === 200) break;
      }
      expect(await takenOf(app)).toBe(1);
      await app.settled();
      expect(app.deliveries).toMatchObject([{ message: { text: "user" } }]);
      for (const result of results)
        if (result.status === "rejected") expect(result.reason).toBeInstanceOf(CrashError);
    },
  };
  for (const disturbed of [
    { crashes: 1 },
    { lostAnswers: 1 },
    { throttles: 1 },
    { expiries: 1 },
    { walks: 5, orders: 1, crashes: 1, lostAnswers: 1, throttles: 1, expiries: 1 },
  ])
    expect((await raceEverywhere(server, { ...once, ...disturbed })).orders).toBeGreaterThan(5);
});

test("a request that crashes may retry in a new process, and an effect outside of the commit is found", async () => {
  const careless = async (app: RaceApp) => {
    const send = () => app.fetch("/seats/careless", { body: {}, as: app.as(), headers: key });
    const isCrash = (error: unknown) => expect(error).toBeInstanceOf(CrashError);
    await send().catch(async (error: unknown) => {
      isCrash(error);
      await new Promise((resolve) => setTimeout(resolve, 40_000));
      await send();
    });
  };
  const race = {
    requests: [careless],
    check: async (app: RaceApp) => expect(await takenOf(app)).toBe(1),
  };
  expect(await raceEverywhere(server, race)).toMatchObject({ orders: 1, exhausted: true });
  const error = await failure(raceEverywhere(server, { ...race, crashes: 1 }));
  expect(error.preemptions).toBe(0);
  expect(error.message).toMatch(/^careless {2}UpdateItem seats +done, crash$/m);
});

test("an invariant is checked after each move, and parallel calls of one request are choices", async () => {
  let moves = 0;
  const parallel = (app: RaceApp) => app.call("seats.seat.parallel", {}, { as: app.as() });
  const { orders } = await raceEverywhere(server, {
    requests: [parallel],
    invariant: () => {
      moves += 1;
    },
    check: () => undefined,
  });
  expect([orders, moves]).toEqual([6, 24]); // each order starts the request, and sends three calls
  const error = await failure(
    raceEverywhere(server, {
      requests: [take],
      invariant: async (app) => expect(await takenOf(app)).toBe(0),
      check: () => undefined,
    }),
  );
  expect(error.replay.length).toBe(error.order.length);
  expect(error.message).toContain("expected 1 to be +0");
});

test("configuration, rows, tokens and other members of a test app belong to the order", async () => {
  const tenants = new Set<string>();
  const { orders } = await raceEverywhere(server, {
    requests: [take, take, (app) => app.fetch("/seats", { as: app.as(["admin"]), method: "GET" })],
    processes: 2,
    arrange: async (app) => {
      const { tenantId } = app;
      tenants.add(tenantId);
      expect(await takenOf(app)).toBe(0);
      const most = { scope: "tenant", tenantId, key: "seats:config:most", value: 0 } as const;
      await app.rows.put(most);
      const ctx = await app.ctx(app.as());
      expect(ctx.requestId).toEqual(expect.any(String));
      expect(await app.token(app.as())).toMatch(/^ey/);
      const before = app.clock.now();
      app.clock.advance(1_000);
      expect([app.clock.now() - before, Date.now(), Date.parse(new Date().toISOString())]).toEqual([
        1_000,
        app.clock.now(),
        app.clock.now(),
      ]);
      const aborted = app.fetch("/seats", { as: app.as(), signal: AbortSignal.abort() });
      expect((await aborted).status).toBeGreaterThan(400);
      expect((await app.fetch("/seats", { body: "no json", as: app.as() })).status).toBe(415);
      expect(app.logs.length).toBeGreaterThan(0);
    },
    orders: 5,
    check: async (app) => expect(await takenOf(app)).toBe(0),
  });
  // The modules are loaded in a separate order.
  expect([orders, tenants.size]).toEqual([5, 6]);
});

test("timers of requests follow the clock of the race, other timers do not", async () => {
  const seen: unknown[] = [];
  const waiting = async (app: RaceApp) => {
    const began = app.clock.now();
    const cleared = setTimeout(() => seen.push("cleared"), 5);
    clearTimeout(cleared);
    const ticks = setInterval(() => seen.push("tick"), 20_000)
      .unref()
      .ref();
    await new Promise((resolve) => setTimeout(resolve, 3_610_000));
    clearInterval(ticks);
    const late = setTimeout(() => seen.push("cleared"), 20);
    setTimeout(() => clearTimeout(late), 10);
    app.clock.advance(100);
    const end = new AbortController();
    const asleep = sleep(1_000, undefined, { signal: end.signal }).catch(({ name }) => name);
    end.abort();
    const tooLate = sleep(1_000, undefined, { signal: end.signal }).catch(({ name }) => name);
    seen.push(app.clock.now() - began, await asleep, await tooLate, await sleep(5, "slept"));
    expect(() => app.clock.advance(-1)).toThrow(RangeError);
  };
  const real = performance.now();
  let ended = 0;
  const outside = new Promise((resolve) => {
    setTimeout(() => {
      ended += 1;
      resolve(undefined);
    }, 5);
  });
  const arrange = () => {
    seen.length = 0;
  };
  await raceEverywhere(server, { requests: [waiting], arrange, check: () => undefined });
  await outside;
  expect(performance.now() - real).toBeLessThan(60_000);
  expect([ended, seen.filter((one) => one === "tick").length]).toEqual([1, 180]);
  expect(seen.slice(-4)).toEqual([3_610_100, "AbortError", "AbortError", "slept"]);
});

test("an order waits for real work, and fails if its requests wait for something that never happens", async () => {
  const outside = { release: () => {} };
  const real = async () => {
    await new Promise<void>((resolve) => {
      outside.release = resolve;
    });
  };
  const timer = setInterval(() => outside.release(), 20);
  try {
    const race = { requests: [real], check: () => undefined };
    expect((await raceEverywhere(server, race)).orders).toBe(1);
  } finally {
    clearInterval(timer);
  }
  const error = await failure(
    raceEverywhere(server, { requests: [() => never, () => never], check: () => undefined }),
  );
  expect(error.message).toContain("nothing happens any more; waiting: request 1, request 2");
});

test("two that settle interleave the messages that wait", async () => {
  const counting = defineFeature("counting", (r) => {
    const table = r.table("counts", { partitionKey: "pk", tenant: true });
    const counted = r.event("count.added", z.object({}));
    r.on(counted, {
      name: "count",
      handler: async (ctx) => {
        const Key = table.key(ctx, "count");
        const get = new GetCommand({ TableName: table.name, Key, ConsistentRead: true });
        const before = Number((await ctx.db.send(get)).Item?.["count"] ?? 0);
        const Item = { ...Key, count: before + 1 };
        await ctx.db.send(new PutCommand({ TableName: table.name, Item }));
      },
    });
    r.write("count.add", { handler: (ctx) => ctx.publish(counted, {}) });
    r.query("count.show", {
      handler: async (ctx) => {
        const get = new GetCommand({ TableName: table.name, Key: table.key(ctx, "count") });
        return { count: (await ctx.db.send(get)).Item?.["count"] };
      },
    });
  });
  const settle = (app: RaceApp) => app.settled();
  const race = raceEverywhere(buildServer({ features: [counting] }), {
    requests: [settle, settle],
    arrange: async (app) => {
      for (let n = 0; n < 2; n += 1) await app.call("counting.count.add", {}, { as: app.as() });
    },
    check: async (app) =>
      expect(await app.call("counting.count.show", {}, { as: app.as() })).toEqual({ count: 2 }),
    // A sweep asks all parts of the outbox in parallel, in more orders than the search tries first.
    ...{ orders: 1, walks: 100 },
  });
  expect((await failure(race)).message).toContain("count");
});

test("a limit of requests in flight holds in a race as in a test app", async () => {
  const limited = buildServer({ features: [seats], limits: { inFlightPerTenant: 1 } });
  const statuses = new Set<number>();
  const ask = async (app: RaceApp) => {
    statuses.add((await app.fetch("/seats", { as: app.as() })).status);
  };
  await raceEverywhere(limited, { requests: [ask, ask], check: () => undefined });
  expect([...statuses].sort()).toEqual([200, 429]);
});

test("what a process knows of slots and kept events ends with it, so that all orders make the same calls", async () => {
  const desk = defineFeature("desk", (r) => {
    const asked = r.event("desk.asked", z.object({}), { keep: true });
    const help = r.job("desk.help", {
      input: z.object({ n: z.number() }), // equal jobs are merged
      concurrency: { total: 1 },
      handler: (ctx) => ctx.publish(asked, {}),
    });
    r.write("desk.queue", {
      input: z.object({ n: z.number() }),
      handler: (ctx, input) => ctx.enqueue(help, input),
    });
  });
  const helping = (index: number) => async (app: RaceApp) => {
    const job = app.jobs[index];
    return job && app.deliver(job);
  };
  await raceEverywhere(buildServer({ features: [desk] }), {
    requests: [helping(0), helping(1)],
    ...{ crashes: 1, orders: 60 },
    arrange: async (app) => {
      for (let n = 0; n < 2; n += 1) await app.call("desk.desk.queue", { n });
    },
    check: async (app) => {
      if (app.events.length === 0) return;
      const { acrossTenants } = await app.ctx(app.as(["systemAdmin"]));
      const scan = new ScanCommand({ TableName: "keelson-kept-events" });
      const { Items = [] } = await acrossTenants("rows without a tenant").send(scan);
      expect(Items).toContainEqual(expect.objectContaining({ sk: "first" })); // of the kept days
    },
  });
});

test("an order has the same times of day whenever it is run", async () => {
  const timesOf = async (realMs: number) => {
    const now = vi.spyOn(Date, "now").mockReturnValue(realMs);
    const times = new Set<number>();
    const tell = async (app: RaceApp) => void times.add(app.clock.now() % 86_400_000);
    try {
      await raceEverywhere(server, { requests: [tell, tell], expiries: 1, check: () => undefined });
    } finally {
      now.mockRestore();
    }
    return [...times];
  };
  expect(await timesOf(Date.UTC(2026, 0, 2, 12, 0, 50))).toEqual(
    await timesOf(Date.UTC(2026, 0, 31, 9, 30, 10)),
  );
});

test("two requests of a crashed process retry in one new process", async () => {
  const ask = async (app: RaceApp) => app.fetch("/seats", { as: app.as() });
  let crashed = 0;
  const retried = async (app: RaceApp) =>
    ask(app).catch(() => {
      crashed += 1;
      return ask(app);
    });
  const starts = new Set<number>();
  await raceEverywhere(server, {
    requests: [(app) => Promise.all([retried(app), retried(app)])],
    crashes: 1,
    arrange: () => {
      crashed = 0;
    },
    check: ({ logs }) => {
      // Each process warns of the loose output once.
      const { length } = logs.filter(({ msg }) => msg === "output.loose");
      if (crashed === 2) starts.add(length);
    },
  });
  expect([...starts]).toEqual([2]);
});

test("a race that cannot open its stack leaves the process as it was", async () => {
  const opening = raceEverywhere(server, {
    requests: [],
    check: () => undefined,
    parameters: { "": "a parameter without a name" },
  });
  await expect(opening).rejects.toThrow();
  expect(Date).toBe(Date.prototype.constructor);
});

test("a race refuses to start while another one has the clock of the process", async () => {
  const requests = [(app: RaceApp) => reading(1, "a")(app)];
  const race = () => raceEverywhere(server, { requests, check: () => undefined });
  const [one, other] = await Promise.allSettled([race(), race()]);
  expect(one).toMatchObject({ status: "fulfilled" });
  expect(other).toMatchObject({
    reason: { message: "raceEverywhere: another race runs in this process; await it first" },
  });
  expect(Date).toBe(Date.prototype.constructor);
});

test("what loads in real time is loaded before the first order, however long it takes", async () => {
  const realTimeout = setTimeout;
  const loading = (ms: number) => {
    let loaded: Promise<void> | undefined;
    return () => {
      loaded ??= new Promise((resolve) => void realTimeout(resolve, ms));
      return loaded;
    };
  };
  const module = loading(60);
  const impatient = async (app: RaceApp) => {
    await Promise.race([module(), sleep(1_000).then(() => Promise.reject("too late"))]);
    await reading(1, "a")(app);
  };
  const sender = loading(500);
  const { orders, exhausted } = await raceEverywhere(server, {
    requests: [impatient, impatient],
    arrange: (app) =>
      void sender()
        .then(() => reading(1, "b")(app))
        .catch(() => undefined),
    check: (_app, results) =>
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]),
  });
  expect([orders, exhausted]).toEqual([2, true]);
});

test("an app whose order is over reaches no store any more", async () => {
  const over = Promise.withResolvers<void>();
  const late: Promise<unknown>[] = [];
  let kept: RaceApp | undefined;
  const careless = async (app: RaceApp) => {
    kept = app;
    late.push(over.promise.then(() => reading(1, "a")(app)));
  };
  await raceEverywhere(server, { requests: [careless], check: () => undefined });
  over.resolve();
  for (const call of late) await expect(call).rejects.toBeInstanceOf(CrashError);
  expect(kept && (await reading(0, "a")(kept))).toEqual({});
});

test("errors of preparations are thrown, and errors of any type are shown", async () => {
  const race = { requests: [take], check: () => Promise.reject("not an error") };
  expect((await failure(raceEverywhere(server, race))).message).toContain(
    "0 preemptions: not an error",
  );
  const broken = { ...race, arrange: () => Promise.reject(new TypeError("no seats")) };
  await expect(raceEverywhere(server, broken)).rejects.toThrow(TypeError);
});

test("consumers, jobs, sweeps and schedules race like workers, and a message that never succeeds is thrown", async () => {
  let fails = false;
  const ran: string[] = [];
  const chores = defineFeature("chores", (r) => {
    const done = r.event("chore.done", z.object({ name: z.string() }));
    r.on(done, {
      name: "praise",
      handler: async (ctx, { payload: { name } }) => {
        if (fails) throw new Error("nobody praises");
        ran.push(name);
        await ctx.delivery.send("log", { text: name });
      },
    });
    r.schedule("chore.daily", {
      cron: "0 3 * * *",
      handler: async (ctx) => {
        if (fails) throw new Error("not today");
        await ctx.publish(done, { name: "daily" });
      },
    });
  });
  const race: RaceScenario<RaceApp, void> = {
    requests: [(app) => app.settled(), (app) => app.settled()],
    processes: 2,
    orders: 10,
    preemptions: 1,
    arrange: async (app) => {
      ran.length = 0;
      const ctx = await app.ctx(app.as());
      await ctx.publish("chore.done" as never, { name: "dishes" } as never);
      app.clock.advance(24 * 3_600_000);
    },
    check: async (app, results) => {
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
      await app.settled();
      expect(ran.sort()).toEqual(["daily", "dishes"]);
      const [event] = app.events;
      if (event !== undefined) expect(await app.deliver(event)).toBe("skipped");
    },
  };
  const worked = buildServer({ features: [chores] });
  expect((await raceEverywhere(worked, race)).orders).toBe(10);
  fails = true;
  const failed = await failure(
    raceEverywhere(worked, { ...race, requests: [(app) => app.settled()] }),
  );
  expect(failed.message).toContain("rejected");
});

test("a server without messages, with its own secret and with parameters of SSM is raced as well", async () => {
  const own = defineFeature("own", (r) => {
    const config = r.config({ keys: { most: createTenantConfig("number", { default: 1 }) } });
    r.query("own.show", {
      route: "GET /own",
      access: access.authenticated,
      handler: async (ctx) => {
        console.log("shown");
        return { most: await ctx.config(config.most) };
      },
    });
  });
  const parameters = { "/own/own/most": "7" };
  const alone = buildServer({
    features: [own],
    auth: { secret: "a separate secret of 32 characters" },
    ssm: { path: "/own" },
    environment: "test",
  });
  const show = async (app: RaceApp) =>
    (await app.fetch("/own", { as: app.as(), headers: { "X-Request-ID": "r1" } })).json();
  const { orders } = await raceEverywhere(alone, {
    requests: [show, show],
    parameters,
    check: async (app, results) => {
      expect(results).toEqual(Array(2).fill({ status: "fulfilled", value: { most: 7 } }));
      expect((await app.fetch("/nowhere")).status).toBe(404);
      expect((await app.fetch("/own", { method: "OPTIONS" })).status).toBe(204);
      const user = { id: "user", tenantId: app.tenantId };
      expect((await app.fetch("/own", { as: user })).status).toBe(200);
      await app.settled();
    },
  });
  expect(orders).toBeGreaterThan(0);
});

test("handlers without keelson are raced by the clients that they use", async () => {
  const began = Date.now();
  const app = await startTestApp(server);
  const client = new DynamoDBClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "a", secretAccessKey: "b" },
    maxAttempts: 1,
  });
  try {
    const TableName = "keelson-seats";
    const bump = async ({ tenantId }: RaceFrame) => {
      const Key = { pk: { S: `${tenantId}-${app.env["AWS_ENDPOINT_URL"]}` } };
      const { Item } = await client.send(
        new GetItemCommand({ TableName, Key, ConsistentRead: true }),
      );
      const taken = { N: String(Number(Item?.["taken"]?.N ?? 0) + 1) };
      await client.send(new PutItemCommand({ TableName, Item: { ...Key, taken } }));
      return taken.N;
    };
    const race: RaceScenario<RaceFrame, string> = {
      requests: [bump, bump],
      check: ({ clock }, results) => {
        expect(clock.now()).toBeGreaterThan(began); // AWS checks the time of signed requests
        expect(new Set(results.map((result) => JSON.stringify(result))).size).toBe(2);
      },
    };
    const error = await failure(raceEverywhere({ clients: [client] }, race));
    expect(error.message).toContain("expected 1 to be 2");
    expect(error.message).toMatch(/^bump 1 {2}GetItem seats +done$/m);
    const alone = { ...race, requests: [bump], crashes: 1, check: () => undefined };
    expect((await raceEverywhere({ clients: [client] }, alone)).orders).toBe(3);
    const thrown = {
      ...race,
      requests: [() => client.send(new GetItemCommand({ TableName: "no", Key: {} }))],
    };
    const wrong = { ...thrown, check: () => Promise.reject(new Error("wrong")) } as never;
    expect((await failure(raceEverywhere({ clients: [client] }, wrong))).message).toContain(
      "Exception",
    );
  } finally {
    client.destroy();
    await app.close();
  }
});

test("an order that never ends fails", async () => {
  const endless = { requests: [reading(2_001, "a")], check: () => undefined };
  expect((await failure(raceEverywhere(server, endless))).message).toContain("over 2000 moves");
});

test("a form with a file, sent twice under one key, is one write in every order", async () => {
  const scans = defineFeature("scans", (r) =>
    r.write("scan.add", {
      route: "POST /scans",
      access: access.authenticated,
      body: "multipart",
      input: z.object({ scan: z.file() }),
      handler: async (_ctx, { scan }) => ({ id: crypto.randomUUID(), text: await scan.text() }),
    }),
  );
  const send = async (app: RaceApp) => {
    const body = new FormData();
    body.append("scan", new File(["scanned"], "a.txt"));
    const headers = { "idempotency-key": "k1" };
    const answer = await app.fetch("/scans", { body, headers, as: app.as() });
    return answer.text();
  };
  await raceEverywhere(buildServer({ features: [scans] }), {
    requests: [send, send],
    check: (_app, [one, other]) => {
      expect(one).toEqual({ status: "fulfilled", value: expect.stringContaining("scanned") });
      expect(other).toEqual(one);
    },
    orders: 200,
  });
});
