import { afterEach, describe, expect, test, vi } from "vitest";
import { createSuspensions } from "./suspensions.ts";
import type { StoredTenant } from "./tenant.ts";

const tenant = (tenantId: string, suspendedMs?: number): StoredTenant => ({
  ...{ tenantId, timeZone: "UTC", createdMs: 0 },
  ...(suspendedMs === undefined ? {} : { suspendedMs, reason: "unpaid" }),
});

function start() {
  const rows = new Map<string, StoredTenant>();
  const [reads, failures]: [string[], unknown[]] = [[], []];
  let nowMs = 1_000_000;
  let meanwhile: () => Promise<void> = async () => undefined;
  const suspensions = createSuspensions({
    store: async () => ({
      read: async (id) => {
        reads.push(id);
        const row = rows.get(id);
        await meanwhile();
        return row;
      },
    }),
    clock: { now: () => nowMs },
    onUnreadable: (error) => failures.push(error),
  });
  const stateOf = (id: string) =>
    suspensions.assertActive(id).then(
      () => "active",
      (error: { readonly code: string; readonly status: number }) =>
        `${error.status} ${error.code}`,
    );
  return {
    ...{ rows, reads, failures, suspensions, stateOf },
    pass: (ms: number) => {
      nowMs += ms;
    },
    during: (work: () => Promise<void>) => {
      meanwhile = work;
    },
  };
}

const suspended = "403 tenant_suspended";
const never = () => new Promise<never>(() => {});

/** Lets the test end the waits for the store. */
function stoppedTimers() {
  const waits: (() => void)[] = [];
  const real = globalThis.setTimeout;
  vi.spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms: number) =>
    ms === 2_000 ? void waits.push(run) : real(run, ms)) as never); // safe: nothing else of it is used
  const elapse = () => {
    for (const end of waits.splice(0)) end();
  };
  return { elapse, waits };
}

afterEach(() => vi.restoreAllMocks());

describe("suspensions", () => {
  test("read a tenant at most once in five seconds, whatever its state", async () => {
    const { rows, reads, stateOf, pass } = start();
    rows.set("active", tenant("active")).set("gone", tenant("gone", 1));
    for (let second = 0; second < 5; second += 1) {
      expect(await Promise.all(["active", "gone", "unknown"].map(stateOf))).toEqual([
        ...["active", suspended, "active"],
      ]);
      pass(999);
    }
    expect(reads).toEqual(["active", "gone", "unknown"]);
    pass(5);
    await stateOf("active");
    expect(reads).toHaveLength(4);
  });

  test("see a suspension and a resumption elsewhere after five seconds", async () => {
    const { rows, stateOf, pass } = start();
    rows.set("acme", tenant("acme"));
    expect(await stateOf("acme")).toBe("active");
    rows.set("acme", tenant("acme", 1));
    pass(5_000);
    expect(await stateOf("acme")).toBe(suspended);
    rows.set("acme", tenant("acme"));
    pass(5_000);
    expect(await stateOf("acme")).toBe("active");
  });

  test("share the read of concurrent requests", async () => {
    const { reads, stateOf } = start();
    await Promise.all(["acme", "acme", "acme"].map(stateOf));
    expect(reads).toEqual(["acme"]);
  });

  test("take a change of their own process at once, even during a read", async () => {
    const { reads, suspensions, stateOf, during } = start();
    during(async () => suspensions.note("acme", true));
    expect(await stateOf("acme")).toBe("active");
    expect(await stateOf("acme")).toBe(suspended);
    suspensions.note("acme", false);
    expect(await stateOf("acme")).toBe("active");
    expect(reads).toEqual(["acme"]);
  });

  test("keep the last known state for a minute while reads fail, and then answer 503", async () => {
    const { rows, reads, failures, stateOf, pass, during } = start();
    rows.set("gone", tenant("gone", 1));
    expect(await Promise.all(["acme", "gone"].map(stateOf))).toEqual(["active", suspended]);
    during(() => Promise.reject(new Error("no table")));
    for (let second = 5; second < 60; second += 5) {
      pass(5_000);
      expect(await Promise.all(["acme", "gone"].map(stateOf))).toEqual(["active", suspended]);
    }
    expect(await stateOf("acme")).toBe("active");
    expect([reads.length, failures.length]).toEqual([24, 22]);
    pass(5_000);
    expect(await stateOf("acme")).toBe("503 pipeline_error");
    expect(await stateOf("new")).toBe("503 pipeline_error");
    during(async () => undefined);
    expect(await stateOf("acme")).toBe("active");
  });

  test("keep no state for more than a minute, even after a read that failed just before", async () => {
    const { rows, stateOf, pass, during } = start();
    rows.set("gone", tenant("gone", 1));
    expect(await Promise.all(["acme", "gone"].map(stateOf))).toEqual(["active", suspended]);
    during(() => Promise.reject(new Error("no table")));
    pass(59_000);
    expect(await Promise.all(["acme", "gone"].map(stateOf))).toEqual(["active", suspended]);
    pass(1_000);
    expect(await Promise.all(["acme", "gone"].map(stateOf))).toEqual([
      ...["503 pipeline_error", "503 pipeline_error"],
    ]);
  });

  test("count a state as too old if it becomes so during a read that fails", async () => {
    const { stateOf, pass, during } = start();
    expect(await stateOf("acme")).toBe("active");
    pass(59_000);
    during(async () => {
      pass(1_000);
      throw new Error("no table");
    });
    expect(await stateOf("acme")).toBe("503 pipeline_error");
  });

  test("use a change of their own process if the read during it fails", async () => {
    const { reads, suspensions, stateOf, pass, during } = start();
    during(async () => {
      pass(1);
      suspensions.note("acme", true);
      throw new Error("no table");
    });
    expect(await stateOf("acme")).toBe(suspended);
    expect(await stateOf("acme")).toBe(suspended);
    expect(reads).toEqual(["acme"]);
  });

  test("count a read without an answer as failed after two seconds", async () => {
    const { failures, stateOf, pass, during } = start();
    expect(await stateOf("acme")).toBe("active");
    const { elapse, waits } = stoppedTimers();
    pass(5_000);
    during(never);
    const states = Promise.all(["acme", "acme", "new"].map(stateOf));
    await vi.waitUntil(() => waits.length === 2);
    elapse();
    expect(await states).toEqual(["active", "active", "503 pipeline_error"]);
    expect(failures).toHaveLength(2);
  });

  test.each([2_000, -1])(
    "replace a read that began %i ms ago, because the process was frozen or its clock was set",
    async (ms) => {
      const { rows, reads, stateOf, pass, during } = start();
      const { elapse, waits } = stoppedTimers();
      const held = Promise.withResolvers<void>();
      during(() => held.promise);
      const first = stateOf("acme");
      await vi.waitUntil(() => waits.length === 1);
      rows.set("acme", tenant("acme", 1));
      during(async () => undefined);
      pass(ms);
      expect(await stateOf("acme")).toBe(suspended);
      held.resolve();
      expect(await first).toBe("active");
      elapse();
      expect(await stateOf("acme")).toBe(suspended);
      expect(reads).toEqual(["acme", "acme"]);
    },
  );

  test("share a read until it is two seconds old", async () => {
    const { reads, stateOf, pass, during } = start();
    const held = Promise.withResolvers<void>();
    during(() => held.promise);
    const first = stateOf("acme");
    pass(1_999);
    const second = stateOf("acme");
    held.resolve();
    expect(await Promise.all([first, second])).toEqual(["active", "active"]);
    expect(reads).toEqual(["acme"]);
  });

  test("read no more because a replaced read fails", async () => {
    const { reads, failures, stateOf, pass, during } = start();
    const { elapse, waits } = stoppedTimers();
    during(never);
    const first = stateOf("acme");
    await vi.waitUntil(() => waits.length === 1);
    during(async () => undefined);
    pass(4_999);
    expect(await stateOf("acme")).toBe("active");
    pass(1);
    elapse();
    expect(await first).toBe("active");
    expect(await stateOf("acme")).toBe("active");
    expect([reads.length, failures.length]).toEqual([2, 1]);
  });

  test("do not trust a state from the future, after the clock was set back", async () => {
    const { reads, stateOf, pass } = start();
    await stateOf("acme");
    pass(-1);
    await stateOf("acme");
    expect(reads).toHaveLength(2);
  });

  test("keep ten thousand tenants, and then forget the oldest tenth", async () => {
    const { reads, suspensions, stateOf } = start();
    for (let n = 0; n <= 10_000; n += 1) suspensions.note(`t${n}`, true);
    expect(await stateOf("t10000")).toBe(suspended);
    expect(await stateOf("t1001")).toBe(suspended);
    expect(reads).toEqual([]);
    expect(await stateOf("t0")).toBe("active");
  });
});
