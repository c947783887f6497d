/**
 * Limits the time of `work`, because the SDK sometimes ignores its abort signal.
 *
 * @throws Error with `message` after `limitMs`.
 */
export async function inTime<Result>(
  work: Promise<Result>,
  limitMs: number,
  message: string,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), limitMs);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
