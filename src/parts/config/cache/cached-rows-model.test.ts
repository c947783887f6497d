import fc from "fast-check";
import { expect, test } from "vitest";
import { createTenantConfig, createUserConfig } from "../declare/declaration.ts";
import type { KeyRows } from "../read/key-rows.ts";
import {
  type ConfigRow,
  type RowOwner,
  systemPartition,
  tenantPartition,
  userPartition,
} from "../read/rows.ts";
import { createCachedRows, groupKeys } from "./cached-rows.ts";

const ttlMs = 5_000;
const maxStaleMs = 30_000;
/** How far a replica lags behind at most. */
const lagMs = 2_000;
const keys = ["files:config:theme", "files:config:limit"] as const;
const keyGroups = groupKeys([
  {
    id: keys[0],
    feature: "files",
    name: "theme",
    definition: createUserConfig("number", {}).definition,
  },
  {
    id: keys[1],
    feature: "files",
    name: "limit",
    definition: createTenantConfig("number", {}).definition,
  },
]);
const scopes = { [keys[0]]: "user", [keys[1]]: "tenant" } as const;
const owners: readonly RowOwner[] = [
  { tenantId: "acme", userId: "ann" },
  { tenantId: "acme", userId: "bob" },
  { tenantId: "other", userId: undefined },
];
const partitions = [
  systemPartition(),
  tenantPartition("acme"),
  tenantPartition("other"),
  userPartition("acme", "ann"),
];

type Step =
  | { readonly do: "read"; readonly owner: number; readonly key: number }
  | {
      readonly do: "write";
      readonly partition: number;
      readonly key: number;
      readonly isOurs: boolean;
    }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "fail"; readonly next: number }
  | { readonly do: "expire" }
  | { readonly do: "lag"; readonly isLagging: boolean };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant("read" as const), owner: fc.nat(2), key: fc.nat(1) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("write" as const),
        partition: fc.nat(3),
        key: fc.nat(1),
        isOurs: fc.boolean(),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("advance" as const),
        ms: fc.constantFrom(1, 100, 1_999, 2_000, 5_000, 31_000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("fail" as const),
        next: fc.integer({ min: 1, max: 3 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("expire" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("lag" as const), isLagging: fc.boolean() }),
    },
  ),
  { maxLength: 40 },
);

/** What the model knows of one row: every version with the time from when on it was the stored one. */
interface History {
  readonly versions: { readonly version: number; readonly fromMs: number }[];
  /** The highest version that this process has written, or has seen in a read. */
  seen: number;
}

/**
 * The values that a read may give, row by row, by the versions of the row:
 * - never one below what this process had written, or any read had seen, when the read began;
 * - never one that had been replaced for longer than `maxStaleMs`, and the replica's lag, when the read began, unless
 *   the read waited and the store failed;
 * - an error only where the store failed.
 */
test("every read returns a version valid at that moment, despite in-flight reads, failures and writes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), steps, async (scheduler, script) => {
      const stored = new Map<string, ConfigRow>();
      const histories = new Map<string, History>();
      const historyOf = (name: string): History => {
        const known = histories.get(name) ?? { versions: [{ version: 0, fromMs: 0 }], seen: 0 };
        histories.set(name, known);
        return known;
      };
      const state = { now: 1_000_000, failing: 0, failedMs: 0, isLagging: false };
      /** What a replica still has that has not seen the last write yet. */
      const before = new Map<
        string,
        { readonly row: ConfigRow | undefined; readonly untilMs: number }
      >();
      const find = (name: string) => {
        const old = before.get(name);
        return state.isLagging && old !== undefined && state.now < old.untilMs
          ? old.row
          : stored.get(name);
      };
      const timers = new Map<() => void, number>();
      const flush: (() => void)[] = [];
      const cached = createCachedRows({
        ttlMs,
        maxStaleMs,
        maxTenants: 10,
        keyGroups,
        clock: { now: () => state.now },
        schedule: {
          soon: (work) => void flush.push(work),
          later: (work, ms) => {
            timers.set(work, state.now + ms);
            return () => timers.delete(work);
          },
          random: () => 0.5,
        },
        reader: {
          read: async (addresses) => {
            const found = addresses.map(({ partition, key }) => find(`${partition} ${key}`));
            const fails = state.failing > 0;
            if (fails) state.failing -= 1;
            await scheduler.schedule(Promise.resolve());
            if (!fails) return found;
            state.failedMs = state.now;
            throw new Error("down");
          },
        },
      });
      const views = owners.map((owner) => cached.view(owner, () => {}));

      const check = (
        rows: KeyRows,
        key: string,
        began: ReadonlyMap<string, number>,
        oldestMs: number,
        failed: boolean,
      ) => {
        for (const { partition, row } of rows.levels) {
          const history = historyOf(`${partition} ${key}`);
          const version = row?.version ?? 0;
          expect(version).toBeGreaterThanOrEqual(began.get(`${partition} ${key}`) ?? 0);
          const replaced = history.versions.find((later) => later.version === version + 1)?.fromMs;
          if (!failed && replaced !== undefined) expect(replaced).toBeGreaterThanOrEqual(oldestMs);
          history.seen = Math.max(history.seen, version);
        }
      };
      const runSoon = () => {
        for (const work of flush.splice(0)) work();
      };
      const pending: Promise<void>[] = [];
      for (const step of script) {
        if (step.do === "read") {
          const key = keys[step.key as 0 | 1];
          const began = new Map([...histories].map(([name, { seen }]) => [name, seen]));
          const oldestMs = state.now - maxStaleMs - lagMs;
          // After a slow failure the store is left alone for as long as that took, at most 4 s.
          const excusedMs = state.now - 4_000;
          const rows = views[step.owner]?.rowsOf(key, scopes[key]);
          if (rows instanceof Promise) {
            pending.push(
              rows.then(
                (arrived) => check(arrived, key, began, oldestMs, state.failedMs >= excusedMs),
                (error: unknown) => expect(String(error)).toMatch(/down|took longer/),
              ),
            );
          } else if (rows !== undefined) check(rows, key, began, oldestMs, false);
        } else if (step.do === "write") {
          const [partition = "", key = keys[0]] = [
            partitions[step.partition],
            keys[step.key as 0 | 1],
          ];
          const name = `${partition} ${key}`;
          const version = (stored.get(name)?.version ?? 0) + 1;
          const row = { value: version, version };
          before.set(name, { row: stored.get(name), untilMs: state.now + lagMs });
          stored.set(name, row);
          const history = historyOf(name);
          history.versions.push({ version, fromMs: state.now });
          if (step.isOurs) {
            cached.noteWrite(partition, key, row);
            history.seen = version;
          }
        } else if (step.do === "advance") state.now += step.ms;
        else if (step.do === "fail") state.failing = step.next;
        else if (step.do === "lag") state.isLagging = step.isLagging;
        else {
          for (const [work, atMs] of timers) {
            if (atMs > state.now) continue;
            state.failedMs = state.now;
            work();
          }
        }
        runSoon();
        await Promise.resolve();
        if (scheduler.count() > 0 && step.do !== "read") await scheduler.waitOne();
      }
      // In the end the store answers, and a read that has to wait sees what is stored.
      state.failing = 0;
      state.isLagging = false;
      const drain = async () => {
        for (let turn = 0; turn < 50; turn++) {
          runSoon();
          await Promise.resolve();
          while (scheduler.count() > 0) await scheduler.waitOne();
        }
      };
      await drain();
      await Promise.all(pending);
      state.now += maxStaleMs + 1;
      const last = Promise.resolve(views[0]?.rowsOf(keys[0], "user"));
      await drain();
      for (const { partition, row } of (await last)?.levels ?? []) {
        expect(row?.version ?? 0).toBe(stored.get(`${partition} ${keys[0]}`)?.version ?? 0);
      }
    }),
    { numRuns: 500 },
  );
});
