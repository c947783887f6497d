/** One line of `results.json`. */
export interface Result {
  readonly id: string;
  /** Medians. */
  readonly ours: number;
  readonly peer: number;
  readonly unit: "ns" | "calls" | "bytes";
  /** `ours / peer`. */
  readonly ratio: number;
  readonly goal: string;
}

/** Two ways to do the same thing `times` times. */
export interface Contest {
  readonly id: string;
  readonly goal: string;
  readonly ours: (times: number) => Promise<void>;
  readonly peer: (times: number) => Promise<void>;
}

const rounds = 15;
const times = 200_000;

/** Times both in turns, so that what else the machine does meets both. */
export async function sideBySide({ id, goal, ours, peer }: Contest): Promise<Result> {
  const taken: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
  await ours(times);
  await peer(times);
  for (let round = 0; round < rounds; round++) {
    taken.ours.push(await nanosecondsOf(ours));
    taken.peer.push(await nanosecondsOf(peer));
  }
  return result({ id, goal, ours: Math.round(median(taken.ours)), peer: Math.round(median(taken.peer)), unit: "ns" });
}

/** A count of calls; the goal is one. */
export function callsOf(id: string, { ours, peer }: { readonly ours: number; readonly peer: number }): Result {
  return result({ id, goal: "ours = 1", ours, peer, unit: "calls" });
}

function result(facts: Omit<Result, "ratio">): Result {
  const { id, ours, peer, unit, goal } = facts;
  return { id, ours, peer, unit, ratio: Math.round((ours / peer) * 1_000) / 1_000, goal };
}

async function nanosecondsOf(work: (times: number) => Promise<void>): Promise<number> {
  const began = process.hrtime.bigint();
  await work(times);
  return Number(process.hrtime.bigint() - began) / times;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
