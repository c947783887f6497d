import { afterEach, expect, test, vi } from "vitest";
import { openChecked } from "../../hosts/container/adapters.ts";
import { fireSchedules } from "../../hosts/lambda/fire-schedules.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { consumeOnce } from "../run/task.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer } from "../server/server.ts";
import { fireTimes } from "./fire-times.ts";
import type { ScheduleOptions } from "./schedule.ts";
import { createSchedules } from "./schedules.ts";

let runs: string[] = [];
const note: ScheduleOptions["handler"] = ({ user }, { at }) =>
  void runs.push(`${user.tenantId} ${at.toISOString()}`);
let handler = note;

const serverOf = (options: Partial<ScheduleOptions> = {}) =>
  buildServer({
    tenants: true,
    features: [
      defineFeature("invoices", (r) => {
        r.table("invoices", { partitionKey: "pk", tenant: true });
        r.schedule("invoice.send", {
          ...{ cron: "30 2 * * *", for: "tenants" },
          handler: (ctx, fire) => handler(ctx, fire),
          ...options,
        });
      }),
    ],
  });

let server = serverOf();
let app: TestApp;
let others: Runtime[] = [];
const lines: string[] = [];
afterEach(async () => {
  await Promise.all(others.map((other) => other.close()));
  await app.close();
  [runs, others, handler] = [[], [], note];
  lines.splice(0);
});

/** Starts an app at a time, in ISO 8601 and always in the future, with tenants as `<ID>@<time zone>`. */
async function start(at: string, ids: readonly string[], options?: Partial<ScheduleOptions>) {
  server = serverOf(options);
  app = await startTestApp(server);
  moveTo(at);
  await app.settled();
  await create(...ids);
}

function moveTo(at: string): void {
  app.clock.advance(Date.parse(at) - app.clock.now());
}

async function create(...ids: readonly string[]): Promise<void> {
  for (const given of ids) {
    const [id = "", timeZone = "UTC"] = given.split("@");
    await server.tenants.create({ id, timeZone });
  }
}

/** Another process on the same tables, with the clock of the app. */
function another(options?: Partial<ScheduleOptions>): Runtime {
  const runtime = createRuntime(serverOf(options), {
    ...{ variables: app.env, clock: app.clock },
    write: (line) => void lines.push(line),
    openAdapters: (bound) => openChecked(bound, app.env, "create"),
  });
  others.push(runtime);
  return runtime;
}

async function look(runtime: Runtime) {
  const adapters = await runtime.adapters.open();
  const [schedule] = await createSchedules(runtime, adapters, consumeOnce);
  return schedule?.look();
}

/** Counts the calls to AWS that a process makes from now on, by operation. */
async function countedCalls(runtime: Runtime): Promise<ReadonlyMap<string, number>> {
  const calls = new Map<string, number>();
  const { database, messaging } = await runtime.adapters.open();
  for (const { middlewareStack } of [database, ...(await messaging.open()).clients])
    middlewareStack.add(
      (next, { commandName = "" }) =>
        (given) => {
          calls.set(commandName, (calls.get(commandName) ?? 0) + 1);
          return next(given);
        },
      { step: "initialize", name: "countedCalls" },
    );
  return calls;
}

test("runs as each tenant, behind the wall, at the time of its zone", async () => {
  const users: unknown[] = [];
  handler = async (ctx, fire) => {
    users.push(ctx.user);
    await note(ctx, fire);
  };
  await start("2099-01-10T12:00:00Z", ["berlin@Europe/Berlin", "utc", "lima@America/Lima"]);
  await app.settled();
  expect(runs).toEqual([]);
  for (const at of ["2099-01-11T01:31:00Z", "2099-01-11T02:31:00Z", "2099-01-11T12:00:00Z"]) {
    moveTo(at);
    await app.settled();
    await app.settled();
  }
  expect(runs).toEqual([
    "berlin 2099-01-11T01:30:00.000Z",
    "utc 2099-01-11T02:30:00.000Z",
    "lima 2099-01-11T07:30:00.000Z",
  ]);
  expect(users[0]).toMatchObject({ tenantId: "berlin", roles: [] });
  expect(Object(users[0])).not.toHaveProperty("id", expect.any(String));
  expect(app.logs).toContainEqual(
    expect.objectContaining({ msg: "schedule.sent", timeZone: "Europe/Berlin", tenants: 1 }),
  );
  expect(app.logs).toContainEqual(
    expect.objectContaining({
      msg: "job.completed",
      handler: "invoices.invoice.send",
      tenantId: "berlin",
    }),
  );
});

test("runs once a night where the clock skips the time, and once where it repeats it", async () => {
  const day = (at: string) => fireTimes("30 2 * * *", "Europe/Berlin").next(Date.parse(at));
  await start("2099-03-28T12:00:00Z", ["berlin@Europe/Berlin"]);
  for (const at of ["2099-03-29T12:00:00Z", "2099-03-30T12:00:00Z"]) {
    moveTo(at);
    await app.settled();
  }
  expect(runs).toEqual([
    "berlin 2099-03-29T01:00:00.000Z", // 02:30 does not exist
    "berlin 2099-03-30T00:30:00.000Z",
  ]);
  expect(day("2099-03-28T12:00:00Z")).toBe(Date.parse("2099-03-29T01:00:00Z"));
  runs = [];
  moveTo("2099-10-24T12:00:00Z");
  await app.settled();
  runs = [];
  for (const at of ["2099-10-25T00:31:00Z", "2099-10-25T01:31:00Z", "2099-10-26T01:31:00Z"]) {
    moveTo(at);
    await app.settled();
  }
  expect(runs).toEqual(["berlin 2099-10-25T00:30:00.000Z", "berlin 2099-10-26T01:30:00.000Z"]);
});

test("leaves out suspended tenants, and those created since the time", async () => {
  await start("2099-01-10T12:00:00Z", ["paused", "acme"]);
  await server.tenants.suspend("paused", { reason: "unpaid" });
  moveTo("2099-01-11T02:31:00Z");
  await create("late", "late-in-lima@America/Lima", "late-in-reykjavik@Atlantic/Reykjavik");
  await app.settled();
  expect(runs).toEqual(["acme 2099-01-11T02:30:00.000Z"]);
  await server.tenants.resume("paused");
  runs = [];
  moveTo("2099-01-12T02:31:00Z");
  await app.settled();
  expect(runs.sort()).toEqual([
    "acme 2099-01-12T02:30:00.000Z",
    "late 2099-01-12T02:30:00.000Z",
    "late-in-lima 2099-01-11T07:30:00.000Z",
    "late-in-reykjavik 2099-01-12T02:30:00.000Z",
    "paused 2099-01-12T02:30:00.000Z",
  ]);
});

test("a new schedule misses no time of tenants that are older", async () => {
  await start("2099-01-10T12:00:00Z", ["acme"]);
  moveTo("2099-01-11T02:31:00Z");
  await app.settled();
  runs = [];
  const nextMs = Date.parse("2099-01-12T01:30:00Z");
  expect(await look(another({ cron: "30 1 * * *" }))).toEqual({ kind: "idle", nextMs });
});

test("fires once for two processes, and each tenant's run happens once", async () => {
  await start("2099-01-10T12:00:00Z", ["a", "b", "c@Asia/Tokyo"]);
  moveTo("2099-01-11T02:31:00Z");
  const [one, other] = [another(), another()];
  const looked = await Promise.all([look(one), look(other)]);
  expect(looked.map((result) => result?.kind).sort()).not.toEqual(["idle", "idle"]);
  await app.settled();
  expect(runs.sort()).toEqual([
    "a 2099-01-11T02:30:00.000Z",
    "b 2099-01-11T02:30:00.000Z",
    "c 2099-01-10T17:30:00.000Z",
  ]);
});

test("the function of schedules sends the jobs too", async () => {
  await start("2099-01-10T12:00:00Z", ["a", "b"]);
  moveTo("2099-01-11T02:31:00Z");
  const fired = await fireSchedules(another(), { deadlineMs: undefined, isOverIn: () => false });
  expect(fired).toEqual({ fired: 1, failed: 0 });
  await app.settled();
  expect(runs.sort()).toEqual(["a 2099-01-11T02:30:00.000Z", "b 2099-01-11T02:30:00.000Z"]);
});

test("a failed run of one tenant is repeated, and no other", async () => {
  let failures = 1;
  handler = async (ctx, fire) => {
    if (ctx.user.tenantId === "a" && failures-- > 0) throw new Error("not now");
    await note(ctx, fire);
  };
  await start("2099-01-10T12:00:00Z", ["a", "b"]);
  moveTo("2099-01-11T02:31:00Z");
  await app.settled();
  expect(runs.sort()).toEqual(["a 2099-01-11T02:30:00.000Z", "b 2099-01-11T02:30:00.000Z"]);
});

test("250 tenants are three pages, and each tenant costs one call", async () => {
  await start(
    "2099-01-10T12:00:00Z",
    Array.from({ length: 250 }, (_, index) => `t${index}`),
  );
  moveTo("2099-01-11T02:31:00Z");
  const process = another();
  await look(process);
  const calls = await countedCalls(process);
  moveTo("2099-01-12T02:31:00Z");
  await look(process);
  expect(Object.fromEntries(calls)).toEqual({
    GetItemCommand: 1, // the record
    QueryCommand: 1 + 3, // time zones, pages
    PutItemCommand: 1, // the claim
    UpdateItemCommand: 1 + 2, // the attempt, pages but the last
    SendMessageCommand: 250,
    TransactWriteItemsCommand: 1, // the end
  });
  await app.settled();
  expect(runs).toHaveLength(500);
  expect(new Set(runs).size).toBe(500);
});

test("schedules share the time zones for 40 seconds, and find a new one then", async () => {
  await start("2099-01-10T12:00:00Z", ["a"]);
  const runtime = another();
  const adapters = await runtime.adapters.open();
  const reading = vi.spyOn(await adapters.tenants.open(), "timeZones");
  const [schedule] = await createSchedules(runtime, adapters, consumeOnce);
  const looked = async () => [(await schedule?.look())?.nextMs, reading.mock.calls.length];
  const [utc, tokyo] = [Date.parse("2099-01-11T02:30:00Z"), Date.parse("2099-01-10T17:30:00Z")];
  expect(await looked()).toEqual([utc, 1]);
  await create("b@Asia/Tokyo");
  app.clock.advance(20_000);
  expect(await looked()).toEqual([utc, 1]);
  app.clock.advance(20_000);
  expect(await looked()).toEqual([tokyo, 2]);
});

test("a time zone that this Node does not know stops no other", async () => {
  await start("2099-01-10T12:00:00Z", ["a"]);
  const runtime = another();
  const store = await (await runtime.adapters.open()).tenants.open();
  const createdMs = app.clock.now();
  await store.add({ tenantId: "nowhere", timeZone: "Nowhere/City", createdMs });
  moveTo("2099-01-11T02:31:00Z");
  const reason = expect.stringContaining("Nowhere/City");
  expect((await look(runtime))?.kind).toBe("failed");
  const logged = lines.map((line): Record<string, unknown> => JSON.parse(line));
  expect(logged).toContainEqual(expect.objectContaining({ msg: "schedule.look_failed", reason }));
  expect(logged).toContainEqual(
    expect.objectContaining({ msg: "schedule.sent", timeZone: "UTC", tenants: 1 }),
  );
});

test("a check that fails is logged, and repeated", async () => {
  await start("2099-01-10T12:00:00Z", ["a"]);
  const runtime = another();
  const adapters = await runtime.adapters.open();
  const store = await adapters.tenants.open();
  vi.spyOn(store, "timeZones").mockRejectedValueOnce(new Error("no table"));
  const [schedule] = await createSchedules(runtime, adapters, consumeOnce);
  expect(await schedule?.look()).toMatchObject({ kind: "failed", reason: "Error: no table" });
  expect((await schedule?.look())?.kind).toBe("idle");
});

test("an attempt that was taken over stops, and the next continues after the last page", async () => {
  await start("2099-01-10T12:00:00Z", ["a", "b", "c"]);
  moveTo("2099-01-11T02:31:00Z");
  const runtime = another();
  const adapters = await runtime.adapters.open();
  const [registry, store] = [await adapters.tenants.open(), await adapters.schedules.open()];
  const [page, advance] = [registry.page.bind(registry), store.advance.bind(store)];
  vi.spyOn(registry, "page").mockImplementation((_limit, ...rest) => page(1, ...rest));
  const advancing = vi.spyOn(store, "advance");
  advancing.mockImplementationOnce(advance).mockResolvedValueOnce(false);
  expect((await look(runtime))?.kind).toBe("failed");
  await app.settled();
  const night = "2099-01-11T02:30:00.000Z";
  expect(runs.sort()).toEqual([`a ${night}`, `b ${night}`, `c ${night}`]);
  expect(app.logs).toContainEqual(
    expect.objectContaining({ msg: "schedule.sent", timeZone: "UTC", tenants: 2 }), // b and c
  );
});

test("an attempt that sent a page counts as the first: all tenants are sent, page by page", async () => {
  await start("2099-01-10T12:00:00Z", ["a", "b", "c", "d", "e", "f", "g"]);
  moveTo("2099-01-11T02:31:00Z");
  const runtime = another();
  const adapters = await runtime.adapters.open();
  const registry = await adapters.tenants.open();
  const page = registry.page.bind(registry);
  let reads = 0;
  vi.spyOn(registry, "page").mockImplementation((_limit, ...rest) => {
    reads += 1;
    return reads % 2 === 1 ? page(1, ...rest) : Promise.reject(new Error("no table"));
  });
  for (let attempt = 1; attempt <= 7; attempt += 1) {
    expect((await look(runtime))?.kind).toBe("failed");
    await app.clock.advance(1_000); // always the first delay
  }
  expect((await look(runtime))?.kind).toBe("fired");
  await app.settled();
  expect(runs).toHaveLength(7);
});

test("five attempts that send no page give the time up", async () => {
  await start("2099-01-10T12:00:00Z", ["a", "b", "c"]);
  moveTo("2099-01-11T02:31:00Z");
  const runtime = another();
  const adapters = await runtime.adapters.open();
  const registry = await adapters.tenants.open();
  const page = registry.page.bind(registry);
  const reading = vi.spyOn(registry, "page");
  reading.mockImplementation((_limit, after, zone) =>
    after === undefined ? page(1, after, zone) : Promise.reject(new Error("no table")),
  );
  const kinds: unknown[] = [];
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    kinds.push((await look(runtime))?.kind);
    await app.clock.advance(60_000);
  }
  expect(kinds).toEqual(["failed", "failed", "failed", "failed", "gave-up"]);
  reading.mockRestore();
  expect((await look(runtime))?.kind).toBe("idle");
  await app.settled();
  expect(runs).toEqual(["a 2099-01-11T02:30:00.000Z"]);
});

test("shares no record with the plain schedule that it was in the release before", async () => {
  await start("2099-01-10T12:00:00Z", ["a"]);
  const plain = createRuntime(
    buildServer({
      features: [
        defineFeature("invoices", (r) => {
          r.schedule("invoice.send", {
            cron: "30 2 * * *",
            handler: () => Promise.reject(new Error("not now")),
          });
        }),
      ],
    }),
    {
      ...{ variables: app.env, clock: app.clock, write: () => undefined },
      openAdapters: (bound) => openChecked(bound, app.env, "create"),
    },
  );
  others.push(plain);
  expect((await look(plain))?.kind).toBe("idle");
  moveTo("2099-01-11T02:31:00Z");
  expect((await look(plain))?.kind).toBe("failed");
  expect((await look(another()))?.kind).toBe("fired");
  expect((await look(plain))?.kind).toBe("waiting");
});

test("the job's payload is its time", () => {
  const schema = server.registry.jobs.get("invoices.invoice.send")?.input["~standard"];
  expect(schema?.validate({ at: "2099-01-10T12:00:00Z" })).toHaveProperty("value");
  expect(schema?.validate({ at: "soon" })).toHaveProperty("issues");
});
