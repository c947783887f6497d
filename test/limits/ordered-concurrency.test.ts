// `order` together with `concurrency`: jobs of a group that wait keep their order.
import { buildServer, defineFeature, PermanentError } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";

let done: string[] = [];
let held = Promise.withResolvers<void>();
let app: TestApp;

const scans = defineFeature("scans", (r) => {
  const input = z.object({ file: z.string(), id: z.string() });
  const scan = r.job("file.scan", {
    input,
    order: ({ file }) => file,
    concurrency: { perTenant: 1 },
    handler: async (_ctx, { id }) => {
      if (id === "blocks") await held.promise;
      if (id === "never") throw new PermanentError("never");
      done.push(id);
    },
  });
  r.write("file.add", {
    handler: (ctx, given) => ctx.enqueue(scan, given as { file: string; id: string }),
  });
});

const as = { id: "ann", tenantId: "acme" };
const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };

beforeEach(async () => {
  app = await startTestApp(buildServer({ features: [scans], log: { level: "debug" } }));
});
afterEach(async () => {
  held.resolve();
  await app.close();
  held = Promise.withResolvers();
  done = [];
});

const add = (id: string) => app.call("scans.file.add", { file: "a", id }, { as });
const lines = (msg: string) => app.logs.filter((line) => line["msg"] === msg);

/** Starts a job of another group that holds the tenant's slot until `held` is resolved. */
async function block(): Promise<{ readonly ended: Promise<unknown> }> {
  const payload = { file: "b", id: "blocks" };
  const jobId = crypto.randomUUID();
  const ended = app.deliver({ jobId, name: "scans.file.scan", payload, ...cause });
  await expect.poll(() => app.calls["PutItem"] ?? 0).toBeGreaterThan(1);
  return { ended };
}

/** Lets all jobs that wait come back, a number of times. */
async function rounds(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await app.settled();
    app.clock.advance(80_000);
  }
  await app.settled();
}

test("jobs of a group that wait run in the order in which they were enqueued, however long they wait", async () => {
  const { ended } = await block();
  for (const id of ["a1", "a2"]) await add(id);
  await rounds(3);
  // A job that comes later does not overtake those that wait.
  for (const id of ["a3", "a4"]) await add(id);
  await rounds(3);
  expect(done).toEqual([]);
  held.resolve();
  await ended;
  await add("a5");
  await rounds(3);
  expect(done).toEqual(["blocks", "a1", "a2", "a3", "a4", "a5"]);
  expect(lines("queue.retry")).toEqual([]);
  expect(lines("queue.dead_lettered")).toEqual([]);
  await add("a6");
  await app.settled();
  expect(done.at(-1)).toBe("a6");
});

test("a job that is dead-lettered lets the next one of its group run", async () => {
  const { ended } = await block();
  for (const id of ["never", "a2"]) await add(id);
  await rounds(1);
  held.resolve();
  await ended;
  const settled = await rounds(3).catch(String);
  expect(settled).toContain("dead-letter queue");
  await rounds(2).catch(() => undefined);
  expect(done).toEqual(["blocks", "a2"]);
});

test("while its line cannot be read, a job is retried", async () => {
  app.faults.before("GetItem", 1).fail("InternalServerError");
  await add("a1");
  await app.settled();
  expect(lines("queue.retry")).toHaveLength(1);
  expect(done).toEqual(["a1"]);
});
