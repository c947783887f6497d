// `concurrency` of jobs and consumers: what a message that waits costs, and what becomes of it.
import { buildServer, createTenantConfig, defineFeature, PermanentError } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { startWatchedApp } from "../../src/tools/testing/app/test-app.ts";

let done: string[] = [];
let failing = 0;
let held = Promise.withResolvers<void>();
let app: TestApp;

async function work(id: string): Promise<void> {
  if (id === "blocks") await held.promise;
  if (id === "never") throw new PermanentError("never");
  if (id === "fails" && failing > 0) {
    failing -= 1;
    throw new Error("not yet");
  }
  done.push(id);
}

const scans = defineFeature("scans", (r) => {
  const { scansAtOnce } = r.config({
    keys: {
      scansAtOnce: createTenantConfig("number", { default: 1, bounds: { min: 1, max: 50 } }),
    },
  });
  const input = z.object({ id: z.string() });
  const added = r.event("file.added", input);
  r.on(added, {
    name: "scan-event",
    concurrency: { perTenant: scansAtOnce },
    handler: (_ctx, { payload }) => work(payload.id),
  });
  r.on(added, { name: "note", handler: () => void done.push("noted") });
  const scan = r.job("file.scan", {
    input,
    concurrency: { perTenant: 5, total: 1 },
    handler: (_ctx, { id }) => work(id),
  });
  r.write("file.add", {
    handler: async (ctx, given) => {
      const { kind, id } = given as { kind: string; id: string };
      if (kind === "event") await ctx.publish(added, { id });
      else await ctx.enqueue(scan, { id });
    },
  });
});

const acme = { id: "ann", tenantId: "acme" };
const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };

const build = () => buildServer({ features: [scans], log: { level: "debug" } });

beforeEach(async () => {
  app = await startTestApp(build());
});
afterEach(async () => {
  held.resolve();
  await app.close();
  held = Promise.withResolvers();
  done = [];
  failing = 0;
});

const add = (kind: string, id: string, as = acme) =>
  app.call("scans.file.add", { kind, id }, { as });
const lines = (msg: string) => app.logs.filter((line) => line["msg"] === msg);

/** Starts a message that holds a slot until `held` is resolved. */
async function block(kind: string): Promise<{ readonly ended: Promise<unknown> }> {
  const id = crypto.randomUUID();
  const ended = app.deliver(
    kind === "event"
      ? { kind: "shared", type: "file.added", eventId: id, payload: { id: "blocks" }, ...cause }
      : { jobId: id, name: "scans.file.scan", payload: { id: "blocks" }, ...cause },
  );
  await expect.poll(() => app.calls["PutItem"] ?? 0).toBeGreaterThan(2);
  return { ended };
}

/** Works until a message has waited so often, and on what is left. */
async function waiting(kind: string, times: number): Promise<void> {
  // Events wait in their queue, and jobs of an ordered queue in the outbox, until they are due.
  while (lines(`${kind}.waiting`).length < times && kind === "job") {
    await app.settled();
    app.clock.advance(75_000);
  }
  await app.settled();
  app.clock.advance(75_000);
  await app.settled();
}

test.each(["event", "job"])(
  "a waiting %s uses no attempt, however often it waits, and runs once",
  async (kind) => {
    const { ended } = await block(kind);
    await add(kind, "a");
    // SQS would have moved it to the dead-letter queue after five receives.
    const waits = waiting(kind, 7);
    await expect.poll(() => lines(`${kind}.waiting`).length).toBeGreaterThanOrEqual(7);
    expect(done.filter((id) => id === "a")).toEqual([]);
    held.resolve();
    await Promise.all([ended, waits]);
    expect(done.filter((id) => id === "a")).toEqual(["a"]);
    expect(lines(`${kind}.waiting`)[0]).toMatchObject({
      level: "debug",
      limit: kind === "event" ? "perTenant" : "total",
      tenantId: "acme",
    });
    expect(lines("queue.dead_lettered")).toEqual([]);
    // The other consumer of the event has run once.
    expect(done.filter((id) => id === "noted")).toHaveLength(kind === "event" ? 2 : 0);
  },
);

test("attempts before a message waits still count", async () => {
  await app.close();
  ({ app } = await startWatchedApp(build(), { maxSteps: 1 }));
  const step = () => app.settled().then(() => "", String);
  failing = 100;
  await add("event", "fails");
  while (lines("queue.retry").length < 2) await step();
  const { ended } = await block("event");
  while (lines("event.waiting").length < 3) await step();
  held.resolve();
  await ended;
  let outcome = "";
  while (!outcome.includes("in the dead-letter queue")) outcome = await step();
  expect(lines("queue.dead_lettered")).toMatchObject([{ receives: 5 }]);
  expect(100 - failing).toBe(5);
});

test("a message that cannot be sent again is returned to its queue, and waits there", async () => {
  const { ended } = await block("event");
  app.faults.before("SendMessage", 1).fail("ServiceUnavailable");
  await add("event", "a");
  const settled = app.settled();
  await expect.poll(() => lines("queue.send_again_failed")).toHaveLength(1);
  held.resolve();
  await Promise.all([ended, settled]);
  expect(done.filter((id) => id === "a")).toEqual(["a"]);
});

test("a tenant's slot is given back if all of the handler's are held", async () => {
  const { ended } = await block("job");
  await add("job", "a", { id: "bob", tenantId: "globex" });
  const settled = app.settled();
  await expect.poll(() => lines("job.waiting")[0]).toBeDefined();
  expect(lines("job.waiting")[0]).toMatchObject({ limit: "total", tenantId: "globex" });
  held.resolve();
  await Promise.all([ended, settled]);
  app.clock.advance(75_000);
  await app.settled();
  expect(done).toContain("a");
});

test("if the slots cannot be read, the message is retried, as after any failure", async () => {
  await add("job", "a");
  app.faults.before("GetItem", 1).fail("InternalServerError");
  await app.settled();
  expect(lines("job.failed")).toHaveLength(1);
  expect(done).toEqual(["a"]);
});
