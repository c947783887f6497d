/**
 * Runs `work` for every item, at most `most` at the same time, and resolves to the results in the
 * order of the items. Starts all of them even if some fail, and rejects with the first error.
 */
export function inPool<Item, Result>(
  items: readonly Item[],
  most: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const left = items.map((item) => ({ item, ...Promise.withResolvers<Result>() }));
  const results = left.map(({ promise }) => promise);
  const take = (): void => {
    const next = left.shift();
    if (next === undefined) return;
    const done = work(next.item);
    done.then(next.resolve, next.reject).finally(take);
  };
  for (let running = 0; running < most; running += 1) take();
  return Promise.all(results);
}
