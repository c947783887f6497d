/**
 * Returns the exponent of a curve: 1 for work that grows in proportion to its size, 2 if it grows with its square. It is
 * taken from the fastest of some runs in turns, which other work on the machine disturbs least. A run of the small size
 * repeats its work until it has taken as long as the run of the large one before it: on a busy machine, a millisecond often
 * passes without an interruption, and ten rarely do. Such a machine also gets more runs: while the exponent is not below
 * `below`, at most `mostRuns`.
 *
 * @param prepare - creates the data of the measured work for a size.
 */
export async function slopeOf(
  [small, large]: readonly [small: number, large: number],
  below: number,
  prepare: (size: number) => () => unknown,
): Promise<number> {
  const fastest = { small: Number.POSITIVE_INFINITY, large: Number.POSITIVE_INFINITY };
  const measured = async (size: number, leastMs: number) => {
    const work = prepare(size);
    const beganMs = performance.now();
    let tookMs: number;
    let times = 0;
    do {
      await work();
      times += 1;
      tookMs = performance.now() - beganMs;
    } while (tookMs < leastMs);
    return tookMs / times;
  };
  let slope = Number.POSITIVE_INFINITY;
  for (let run = 1; run <= mostRuns && (run <= fewestRuns || slope >= below); run += 1) {
    const largeMs = await measured(large, 0);
    fastest.large = Math.min(fastest.large, largeMs);
    fastest.small = Math.min(fastest.small, await measured(small, largeMs));
    slope = Math.log(fastest.large / fastest.small) / Math.log(large / small);
  }
  return slope;
}

const [fewestRuns, mostRuns] = [7, 40];
