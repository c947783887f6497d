/** Expected form of a curve: work by size. */
export type Theory = "flat" | "log" | "linear" | "square";

/** Something that is measured at several sizes. */
export interface Curve {
  readonly id: string;
  readonly unit: "ns" | "us" | "ms" | "calls" | "units" | "bytes" | "rounds" | "runs";
  readonly theory: Theory;
  readonly sizes: readonly number[];
  /** Rounds of a time, whose fastest counts. Default 7. A count is exact, so one round is enough. */
  readonly rounds?: number;
  /** Prepares a size, and returns what measures it: in nanoseconds for times. */
  readonly at: (size: number) => Promise<Measurement> | Measurement;
}

export type Measurement = () => Promise<number> | number;

/** A curve as `results.json` has it. */
export interface Growth {
  readonly id: string;
  readonly unit: Curve["unit"];
  /** Size and figure. */
  readonly figures: readonly (readonly [size: number, figure: number])[];
  /** Exponent from the smallest to the largest size: 1 for work in proportion to the size. */
  readonly slope: number;
  readonly theory: Theory;
  /** Largest slope that is as theory says, with room for noise. */
  readonly bound: number;
  readonly status: "met" | "missed";
}

/** Measures all sizes in turns, so that other work on the machine affects each. */
export async function grown(curve: Curve): Promise<Growth> {
  const { id, unit, theory, sizes, at } = curve;
  const isTime = unit === "ns" || unit === "us" || unit === "ms";
  const rounds = isTime ? (curve.rounds ?? 7) : 1;
  const measured: { readonly size: number; readonly measure: Measurement; least: number }[] = [];
  for (const size of sizes)
    measured.push({ size, measure: await at(size), least: Number.POSITIVE_INFINITY });
  for (let round = 0; round < rounds; round += 1)
    for (const one of measured) one.least = Math.min(one.least, await one.measure());
  const figures = measured.map(
    ({ size, least }) => [size, significant(least / (nanoseconds[unit] ?? 1))] as const,
  );
  const slope = slopeOf(figures);
  const bound = rounded(theorySlope(theory, sizes) + (isTime ? timeRoom : 0.05));
  return { id, unit, figures, slope, theory, bound, status: slope <= bound ? "met" : "missed" };
}

/** For garbage collection, caches of the processor and other work. Curves with a defect were steeper by 0.6 and more. */
const timeRoom = 0.4;

const nanoseconds: Readonly<Record<string, number>> = { ns: 1, us: 1e3, ms: 1e6 };

/** The exponent from the first to the last size. */
export function slopeOf(figures: Growth["figures"]): number {
  const [first, last] = [figures.at(0), figures.at(-1)];
  if (first === undefined || last === undefined) throw new Error("a curve without sizes");
  return rounded(Math.log(last[1] / first[1]) / Math.log(last[0] / first[0]));
}

function theorySlope(theory: Theory, sizes: readonly number[]): number {
  if (theory !== "log") return { flat: 0, linear: 1, square: 2 }[theory];
  return slopeOf(sizes.map((size) => [size, Math.log2(size + 1)]));
}

function rounded(value: number): number {
  return Number(value.toFixed(2)) + 0; // no negative zero
}

function significant(value: number): number {
  return Number(value.toPrecision(3));
}

/** The nanoseconds of one of `times` runs of `work`. */
export async function timeOf(times: number, work: () => unknown): Promise<number> {
  const began = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - began) / times;
}

export function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
