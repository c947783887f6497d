/** @throws Error with `message` after the limit: the SDK ignores its abort signal in places. */
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
