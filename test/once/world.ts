import { type ClaimRecord, judge, keyText, skewMs } from "../../src/parts/once/claim.ts";
import type {
  CancellationReason,
  ClaimStore,
  TransactionItem,
} from "../../src/parts/once/claim-store.ts";
import type { ClaimSchedule } from "../../src/parts/once/held-claim.ts";

/** Fate of one call of the store. */
export type Fate =
  | "fine"
  | "fails"
  | "answer lost"
  | "process dies before"
  | "process dies after"
  | "conflict";

/** State that the worlds of a run share: the store, its clock, and everything that must never happen. */
export class World {
  nowMs = 1_700_000_000_000;
  readonly records = new Map<string, ClaimRecord>();
  readonly effects: string[] = [];
  /** The tokens of the transactions that were written: the same one again is the same transaction. */
  readonly tokens = new Set<string>();
  /** The items of each transaction that was written. */
  readonly transactions: (readonly TransactionItem[])[] = [];
  readonly violations: string[] = [];
  /** Reached states, which show the model's coverage. */
  readonly seen = new Set<string>();

  /** Replaces a record, as DynamoDB would after its condition held. */
  set(key: string, next: ClaimRecord | undefined, by: string): void {
    const before = this.records.get(key);
    const isDone =
      before !== undefined &&
      before.status === "COMPLETED" &&
      judge(before, "", this.nowMs) === "done";
    if (isDone && next !== before && before.owner !== by)
      this.violations.push(`the stored answer of ${before.owner} was replaced by ${by}`);
    if (next === undefined && before !== undefined && before.owner !== by)
      this.violations.push(`the claim of ${before.owner} was released by ${by}`);
    if (next === undefined) this.records.delete(key);
    else this.records.set(key, next);
  }
}

/** One process: it may die, and then nothing of it goes on. */
export interface Process {
  isAlive: boolean;
  readonly name: string;
}

export interface StartedProcess extends Process {
  /** Resolves a turn after its end: whoever waits for a dead process waits for nothing. */
  readonly end: Promise<"dead">;
}

export function startProcess(name: string): StartedProcess {
  const { promise: end, resolve } = Promise.withResolvers<"dead">();
  let isAlive = true;
  return {
    ...{ name, end },
    get isAlive() {
      return isAlive;
    },
    set isAlive(alive) {
      isAlive = alive;
      if (!alive) setImmediate(resolve, "dead");
    },
  };
}

/** The store as one process sees it; `turn` decides when a call is carried out, and its result. */
export function storeOf(
  world: World,
  process: Process,
  turn: (call: string) => Promise<Fate>,
): ClaimStore {
  // Calls of a dead process do not reach the store.
  const assertAlive = () => {
    if (!process.isAlive) throw new Error(`${process.name} is dead`);
  };
  const call = async <Result>(
    name: string,
    work: () => Result,
    conflict?: () => Result,
  ): Promise<Result> => {
    assertAlive();
    const fate = await turn(name);
    world.seen.add(`${name}: ${fate}`);
    if (fate === "process dies before") process.isAlive = false;
    assertAlive();
    if (fate === "fails")
      throw Object.assign(new Error("refused"), { name: "InternalServerError" });
    const result = fate === "conflict" && conflict !== undefined ? conflict() : work();
    if (fate === "process dies after") process.isAlive = false;
    assertAlive();
    if (fate === "answer lost")
      throw Object.assign(new Error("socket hang up"), { name: "TimeoutError" });
    return result;
  };
  return {
    take: (key, claim, nowMs) =>
      call("take", () => {
        const text = keyText(key);
        const before = world.records.get(text);
        // As the condition has it, on the clock of the process that asks.
        const isFree =
          before === undefined ||
          (before.status === "COMPLETED"
            ? before.expiresAt <= Math.floor(nowMs / 1000)
            : before.leaseUntilMs < nowMs - skewMs && before.generation === claim.generation);
        if (!isFree) return before;
        world.set(text, claim, before?.owner ?? claim.owner);
        return undefined;
      }),
    read: (key) => call("read", () => world.records.get(keyText(key))),
    renew: (key, owner, leaseUntilMs, expiresAt) =>
      call("renew", () => {
        const before = world.records.get(keyText(key));
        if (before?.status !== "INPROGRESS" || before.owner !== owner) return false;
        world.set(keyText(key), { ...before, leaseUntilMs, expiresAt }, owner);
        return true;
      }),
    complete: (key, claim) =>
      call("complete", () => {
        const before = world.records.get(keyText(key));
        if (before?.owner !== claim.owner) return false;
        world.set(keyText(key), claim, claim.owner);
        return true;
      }),
    release: (key, owner) =>
      call("release", () => {
        const before = world.records.get(keyText(key));
        if (before?.status === "INPROGRESS" && before.owner === owner)
          world.set(keyText(key), undefined, owner);
      }),
    vacate: (key, owner, expiresAt) =>
      call("release", () => {
        const before = world.records.get(keyText(key));
        if (before?.status === "INPROGRESS" && before.owner === owner)
          world.set(keyText(key), { ...before, owner: "", leaseUntilMs: 0, expiresAt }, owner);
      }),
    extend: (key, owner, expiresAt) =>
      call("extend", () => {
        const before = world.records.get(keyText(key));
        if (
          before?.status === "COMPLETED" &&
          before.owner === owner &&
          before.expiresAt < expiresAt
        )
          world.set(keyText(key), { ...before, expiresAt }, owner);
      }),
    commit: ({ items, token, completed, held }) =>
      call<readonly CancellationReason[] | undefined>(
        "commit",
        () => {
          if (world.tokens.has(token)) return undefined;
          const none = items.map(() => ({ code: "None", message: "" }));
          if (items.some(neverHolds)) {
            const reasons = items.map((item) => ({
              code: neverHolds(item) ? "ConditionalCheckFailed" : "None",
              message: "",
            }));
            return [...reasons, { code: "None", message: "" }];
          }
          if (completed !== undefined) {
            const text = keyText(completed.key);
            const before = world.records.get(text);
            if (before?.status !== "INPROGRESS" || before.owner !== completed.claim.owner) {
              return [...none, { code: "ConditionalCheckFailed", message: "" }];
            }
            world.set(text, completed.claim, completed.claim.owner);
          }
          if (held !== undefined) {
            const before = world.records.get(keyText(held.key));
            if (before?.status !== "INPROGRESS" || before.owner !== held.owner) {
              return [...none, { code: "ConditionalCheckFailed", message: "" }];
            }
          }
          world.effects.push(...items.map(effectOf));
          world.transactions.push(items);
          world.tokens.add(token);
          return undefined;
        },
        () =>
          [...items, ...(completed === undefined ? [] : [{}])].map(() => ({
            code: "TransactionConflict",
            message: "",
          })),
      ),
    putParts: () => call("putParts", () => undefined),
    readParts: () => call("readParts", () => []),
  };
}

/** Whether the condition of an item never holds. */
function neverHolds(item: TransactionItem): boolean {
  return item["ConditionCheck"] === "never";
}

function effectOf(item: TransactionItem): string {
  return JSON.stringify(item);
}

/** Timers that pass when the world's time does. */
export function timersOf(
  world: World,
  process: Process,
  turn: (call: string) => Promise<unknown>,
): ClaimSchedule & { tick(): void } {
  const tasks = new Set<() => void>();
  return {
    wait: async (ms) => {
      await turn("wait");
      world.nowMs += ms;
    },
    repeat: (_ms, task) => {
      tasks.add(task);
      return () => tasks.delete(task);
    },
    random: () => 0.5,
    now: () => world.nowMs,
    tick: () => {
      if (process.isAlive) for (const task of tasks) task();
    },
  };
}
