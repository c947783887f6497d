/** Longest wait for an answer of a store, in milliseconds. */
export const patienceMs = 2_000;

/** Waits for a call to a store. @throws its error, or an Error after {@link patienceMs}. */
export async function inTime<Result>(call: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Error(`the store has not answered within ${patienceMs} ms`);
  const timer = setTimeout(() => reject(late), patienceMs);
  return Promise.race([call, promise]).finally(() => clearTimeout(timer));
}
