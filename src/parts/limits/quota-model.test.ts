import fc from "fast-check";
import { expect, test } from "vitest";
import { claimKey } from "../once/claim.ts";
import type { ClaimCommit, ClaimStore, TransactionItem } from "../once/claim-store.ts";
import type { Claim } from "../once/held-claim.ts";
import { RunCommit } from "../once/run-commit.ts";
import {
  contested,
  type QuotaChange,
  type QuotaStore,
  type UsageCondition,
  type UsageWrite,
} from "./quota-change.ts";
import { QuotaExceededError } from "./quota-error.ts";

const runs = 2_000;
const answer = { status: 200, headers: {}, cookies: [], body: "done" };

/** Outcome of one call of the store. `late`: it fails, and is carried out at some later time. */
const fates = ["fine", "conflict", "fails", "answer lost", "late", "dies before", "dies after"];
type Fate = (typeof fates)[number];

interface Deed {
  /** Number of the request. A request that died or failed is sent again with the same key. */
  readonly request: number;
  readonly add: number;
  readonly limit: number;
  readonly isClaimed: boolean;
  readonly fate: readonly Fate[];
}

const deeds = fc.array(
  fc.record({
    request: fc.nat(5),
    add: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: -8, max: -1 })),
    limit: fc.constantFrom(10, 10, 10, 6, 0),
    isClaimed: fc.boolean(),
    fate: fc.array(
      fc.oneof({ weight: 4, arbitrary: fc.constant("fine") }, fc.constantFrom(...fates)),
      {
        maxLength: 8,
      },
    ),
  }),
  { minLength: 2, maxLength: 9 },
);

/** Item of this model's store. */
interface Counted {
  readonly write: UsageWrite;
}

class World {
  used: number | undefined;
  /** Usage according to what was done: each request once, down to 0. */
  expected = 0;
  /** Owner of each claim in progress, and `done` for a completed one. */
  readonly claims = new Map<string, string>();
  readonly tokens = new Set<string>();
  /** Number of times that each run counted. */
  readonly done = new Map<string, number>();
  readonly late: (() => void)[] = [];
  readonly violations: string[] = [];
  readonly seen = new Set<string>();

  /** Carries out a transaction as DynamoDB does, atomically. */
  write(commit: ClaimCommit, deed: Deed, run: string) {
    if (this.tokens.has(commit.token)) return undefined;
    const { write } = commit.items[0] as unknown as Counted; // safe: this model made it
    const { completed } = commit;
    const isOurs =
      completed === undefined || this.claims.get(String(deed.request)) === completed.claim.owner;
    const holds = write.condition === undefined || this.#holds(write.condition);
    if (!isOurs || !holds)
      return [holds, ...(completed === undefined ? [] : [isOurs])].map((one) => ({
        code: one ? "None" : "ConditionalCheckFailed",
        message: "",
      }));
    this.tokens.add(commit.token);
    if (completed !== undefined) this.claims.set(String(deed.request), "done");
    const before = this.used ?? 0;
    this.used = write.kind === "set" ? write.number : before + write.number;
    this.expected = Math.max(0, this.expected + deed.add);
    this.done.set(run, (this.done.get(run) ?? 0) + 1);
    this.#check(deed);
    return undefined;
  }

  #check({ add, limit }: Deed) {
    const used = this.used ?? 0;
    if (add > 0 && used > limit) this.violations.push(`${used} of ${limit}`);
    if (used < 0) this.violations.push(`${used} is below 0`);
    if (used !== this.expected) this.violations.push(`${used}, not ${this.expected}`);
  }

  #holds(condition: UsageCondition): boolean {
    const { used } = this;
    if ("atMost" in condition) return (used ?? 0) <= condition.atMost;
    if ("atLeast" in condition) return used !== undefined && used >= condition.atLeast;
    return used === condition.exactly;
  }
}

test(`usage is exact and within the limit in ${runs} interleavings with failures and crashes`, async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), deeds, async (scheduler, program) => {
      const world = new World();
      const all = program.map((deed, index) => perform(world, scheduler, deed, `run ${index}`));
      await scheduler.waitFor(Promise.all(all));
      for (const carryOut of world.late.splice(0)) carryOut();
      expect(world.violations).toEqual([]);
      expect(Math.max(0, ...world.done.values())).toBeLessThanOrEqual(1);
      expect(world.used ?? 0).toBe(world.expected);
      for (const state of world.seen) seen.add(state);
    }),
    { numRuns: runs },
  );
  for (const outcome of ["committed", "quota exceeded", "failed", "died", "replayed"])
    expect(seen).toContain(outcome);
  for (const fate of fates) expect(seen).toContain(`commit: ${fate}`);
  expect(seen).toContain("read: fine");
});

async function perform(world: World, scheduler: fc.Scheduler, deed: Deed, run: string) {
  const { add, limit, isClaimed } = deed;
  const left = [...deed.fate];
  let isAlive = true;
  const dead = new Error("the process is dead");
  const call = async <Result>(name: string, work: () => Result, conflict?: Result) => {
    await scheduler.schedule(Promise.resolve(), name);
    if (!isAlive) throw dead;
    const fate = left.shift() ?? "fine";
    world.seen.add(`${name}: ${fate}`);
    if (fate === "dies before") isAlive = false;
    if (!isAlive) throw dead;
    if (fate === "fails") throw named("InternalServerError");
    if (fate === "late") {
      world.late.push(work);
      throw named("TimeoutError");
    }
    const result = fate === "conflict" && conflict !== undefined ? conflict : work();
    // What came late on the network is carried out in between.
    if (scheduler.count() % 3 === 0) world.late.shift()?.();
    if (fate === "dies after") isAlive = false;
    if (!isAlive) throw dead;
    if (fate === "answer lost") throw named("TimeoutError");
    return result;
  };
  const claims = {
    commit: (commit: ClaimCommit) => {
      const conflict = [...commit.items, ...(commit.completed === undefined ? [] : [{}])];
      return call(
        "commit",
        () => world.write(commit, deed, run),
        conflict.map(() => ({ code: "TransactionConflict", message: "" })),
      );
    },
    read: () =>
      call("claim", () => {
        const owner = world.claims.get(String(deed.request));
        const isOwn = owner === "done" && world.done.has(run);
        return isOwn ? { status: "COMPLETED", owner: run, expiresAt: 0 } : undefined;
      }),
  } as unknown as ClaimStore; // a commit calls nothing else
  const quotas: QuotaStore = {
    read: () => call("read", () => world.used),
    item: (_row, write) => ({ write }) as unknown as TransactionItem, // safe: of this model
    list: async function* () {},
  };
  await scheduler.schedule(Promise.resolve(), "take");
  if (isClaimed) {
    const before = world.claims.get(String(deed.request));
    if (before === "done") return void world.seen.add("replayed");
    // As after the lease of the run before.
    world.claims.set(String(deed.request), run);
  }
  const claim = {
    ...{ key: claimKey(["n"], String(deed.request)), owner: run },
    ...{ fingerprint: undefined, retentionMs: () => 1, lose: () => undefined },
    paused: (work: () => Promise<unknown>) => work(),
  } as unknown as Claim; // the parts that a commit uses
  const commit = new RunCommit({
    store: claims,
    clock: { now: () => 0 },
    pause: () => scheduler.schedule(Promise.resolve(), "pause"),
    claim: isClaimed ? claim : undefined,
    ...{ completes: true, cipher: undefined, toStored: undefined, signal: undefined },
  });
  const change: QuotaChange = {
    row: { tenantId: "acme", quota: "q", period: { id: "forever", endsAtMs: undefined } },
    ...{ add, limit },
    refusal: (used) => new QuotaExceededError({ quota: "q", used, limit }),
  };
  try {
    await commit.commit([], answer, [], [contested(quotas, change)]);
    world.seen.add("committed");
    if (world.done.get(run) !== 1) world.violations.push(`${run} committed, and did not count`);
  } catch (error) {
    const isRefused = error instanceof QuotaExceededError;
    world.seen.add(isRefused ? "quota exceeded" : isAlive ? "failed" : "died");
    if (isRefused && error.details.used + add <= limit)
      world.violations.push(`${run} was refused ${add} at ${error.details.used} of ${limit}`);
  }
}

function named(name: string) {
  return Object.assign(new Error(name), { name });
}
