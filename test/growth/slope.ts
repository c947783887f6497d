/**
 * Returns the exponent of a curve: 1 for work that grows in proportion to its size, 2 if it grows with its square. It is
 * taken from the fastest of some runs in turns, which other work on the machine disturbs least.
 *
 * @param prepare - makes what the measured work needs for a size.
 */
export async function slopeOf(
  [small, large]: readonly [small: number, large: number],
  prepare: (size: number) => () => unknown,
  runs = 12,
): Promise<number> {
  const fastest = new Map([
    [small, Number.POSITIVE_INFINITY],
    [large, Number.POSITIVE_INFINITY],
  ]);
  for (let run = 0; run < runs; run++) {
    for (const [size, best] of fastest) {
      const work = prepare(size);
      const beganMs = performance.now();
      await work();
      fastest.set(size, Math.min(best, performance.now() - beganMs));
    }
  }
  const [first = Number.NaN, last = Number.NaN] = fastest.values();
  return Math.log(last / first) / Math.log(large / small);
}
