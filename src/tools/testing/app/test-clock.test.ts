// own process: it fakes timers
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer } from "../../../app/server/server.ts";
import { access } from "../../../base/identity/access.ts";
import { startTestApp, type TestApp } from "./test-app.ts";
import { createTestClock } from "./test-clock.ts";

const ann = { id: "ann", tenantId: "acme" };
let held = Promise.withResolvers<void>();
let began = Promise.withResolvers<void>();
const works = defineFeature("works", (r) => {
  r.write("work.hold", {
    route: "POST /works",
    access: access.authenticated,
    handler: async () => {
      began.resolve();
      await held.promise;
      return { done: true };
    },
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [works] }));
});
afterAll(() => app.close());

/** Holds a handler while `work` is done; gives how far beyond the clock's time the lease of its claim is after it. */
async function leaseAfter(
  requestId: string,
  work: () => void,
): Promise<{ leftMs: () => Promise<number>; end(): Promise<number> }> {
  [held, began] = [Promise.withResolvers(), Promise.withResolvers()];
  const answer = app.fetch("/works", {
    method: "POST",
    body: {},
    as: ann,
    headers: { "x-request-id": requestId },
  });
  await began.promise;
  work();
  const { db } = await app.ctx(ann);
  return {
    leftMs: async () => {
      const { Items = [] } = await db.send(
        new ScanCommand({ TableName: "keelson-once", ConsistentRead: true }),
      );
      const claim = Items.find(({ status }) => status === "INPROGRESS");
      return Number(claim?.["in_progress_expiration"]) - app.clock.now();
    },
    end: async () => {
      held.resolve();
      return (await answer).status;
    },
  };
}

test("a running handler keeps its claim when the clock advances in steps", async () => {
  const lease = await leaseAfter("steps", () => {
    for (let step = 0; step < 5; step += 1) app.clock.advance(15_000);
  });

  await expect.poll(lease.leftMs).toBeGreaterThan(25_000);
  expect(await lease.end()).toBe(200);
});

test("a running handler keeps its claim when the clock jumps far beyond the lease", async () => {
  const lease = await leaseAfter("leap", () => app.clock.advance(75_000));

  await expect.poll(lease.leftMs).toBeGreaterThan(25_000);
  expect(await lease.end()).toBe(200);
});

test("a failed renewal lets the claim expire", async () => {
  const before = app.calls["UpdateItem"] ?? 0;
  const lease = await leaseAfter("lapse", () => {
    app.faults.before("UpdateItem", 1).fail("TimeoutError");
    app.clock.advance(33_000);
  });

  await expect.poll(() => app.calls["UpdateItem"]).toBe(before + 1);
  expect(await lease.leftMs()).toBeLessThan(0);
  expect(await lease.end()).toBe(200);
});

test("repeated tasks follow real and advanced time, one run at a time, until they are stopped", async () => {
  vi.useFakeTimers();
  try {
    const { clock, timers } = createTestClock();
    let running = 0;
    const task = vi.fn(async () => {
      expect(++running).toBe(1);
      await vi.waitFor(() => undefined);
      running -= 1;
    });
    const stop = timers.repeat(10_000, task);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(task).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(task).toHaveBeenCalledTimes(1);

    clock.advance(9_000);
    await vi.advanceTimersByTimeAsync(0);
    expect(task).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(task).toHaveBeenCalledTimes(2);

    clock.advance(75_000);
    clock.advance(10_000);
    await vi.advanceTimersByTimeAsync(0);
    expect(task).toHaveBeenCalledTimes(4);

    clock.advance(10_000);
    stop();
    clock.advance(10_000);
    await vi.advanceTimersByTimeAsync(0);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(task).toHaveBeenCalledTimes(4);
  } finally {
    vi.useRealTimers();
  }
});
