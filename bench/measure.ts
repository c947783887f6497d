/** One line of `results.json`. */
export interface Result {
  readonly id: string;
  /** Medians. */
  readonly ours: number;
  readonly peer: number;
  readonly unit: "ns" | "us" | "ms" | "calls" | "requests" | "bytes" | "instantiations" | "per s";
  /** `ours / peer`; `ours` where the peer's is 0. */
  readonly ratio: number;
  /** The lower and the upper quartile of the ratios of single runs, where these are processes of their own. */
  readonly spread?: readonly [number, number];
  /** What nobody gets below, where that was measured in the same run. */
  readonly floor?: number;
}

/** Two ways to do the same thing `times` times. */
export interface Contest {
  readonly id: string;
  /** How often a round does it. Default 200,000. */
  readonly times?: number;
  readonly ours: (times: number) => Promise<void>;
  readonly peer: (times: number) => Promise<void>;
}

const rounds = 15;

/** Times both in turns, so that what else the machine does meets both. */
export async function sideBySide({ id, times = 200_000, ours, peer }: Contest): Promise<Result> {
  const taken: { ours: number[]; peer: number[] } = { ours: [], peer: [] };
  await ours(times);
  await peer(times);
  for (let round = 0; round < rounds; round++) {
    taken.ours.push(await nanosecondsOf(ours, times));
    taken.peer.push(await nanosecondsOf(peer, times));
  }
  return result({
    id,
    ours: Math.round(median(taken.ours)),
    peer: Math.round(median(taken.peer)),
    unit: "ns",
  });
}

/** A count of calls. */
export function callsOf(
  id: string,
  { ours, peer }: { readonly ours: number; readonly peer: number },
): Result {
  return result({ id, ours, peer, unit: "calls" });
}

/** Adds the ratio. A peer of nothing counts as one: JSON has no infinity. */
export function result(facts: Omit<Result, "ratio">): Result {
  const { spread, floor, ...rest } = facts;
  const { ours, peer } = rest;
  const ratio = rounded(ours / (peer === 0 ? 1 : peer), 3);
  const others = Object.entries({ spread, floor }).filter(([, value]) => value !== undefined);
  return { ...rest, ratio, ...Object.fromEntries(others) };
}

/** What single runs come to, each of which has a ratio of its own: their median, and its own times. */
export function resultOfRuns(
  facts: Pick<Result, "id" | "unit">,
  runs: readonly Pick<Result, "ours" | "peer" | "floor">[],
  decimals = 0,
): Result {
  const ratios = runs.map(({ ours, peer }) => ours / peer);
  // The times of the run whose ratio counts: medians of their own would have another.
  const { ours = Number.NaN, peer = Number.NaN } = runs[ratios.indexOf(median(ratios))] ?? {};
  const floors = runs.flatMap(({ floor, peer }) => (floor === undefined ? [] : [floor / peer]));
  return result({
    ...facts,
    ours: rounded(ours, decimals),
    peer: rounded(peer, decimals),
    spread: spreadOf(ratios),
    ...(floors.length > 0 && { floor: rounded(median(floors) * peer, decimals) }),
  });
}

/** The lower and the upper quartile. */
export function spreadOf(ratios: readonly number[]): readonly [number, number] {
  const sorted = [...ratios].sort((a, b) => a - b);
  const at = (share: number) =>
    rounded(sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN, 3);
  return [at(0.25), at(0.75)];
}

/** A ratio as the tables have it, with that of the floor. */
export function shownRatio({
  ratio,
  spread,
  floor,
  peer,
}: Pick<Result, "ratio" | "spread" | "floor" | "peer">): string {
  const shown = spread === undefined ? `${ratio}` : `${ratio} (${spread.join(" to ")})`;
  return floor === undefined ? shown : `${shown}, floor ${rounded(floor / peer, 3)}`;
}

/** The middle one; of an even number the upper of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The number with so many decimals. */
export function rounded(value: number, decimals: number): number {
  return Number(value.toFixed(decimals));
}

/** How long it takes to do something once, in nanoseconds. */
export async function nanosecondsOf(
  work: (times: number) => Promise<void>,
  times: number,
): Promise<number> {
  const began = process.hrtime.bigint();
  await work(times);
  return Number(process.hrtime.bigint() - began) / times;
}
