/** Node in a request's wait-for graph: a computed key whose evaluation has started. */
export interface ComputedNode {
  readonly key: string;
  readonly waitsFor: Set<ComputedNode>;
  /** After success or failure. A settled node waits for no other, even with reads in flight. */
  settled: boolean;
}

export type ComputedValues = ReturnType<typeof createComputedValues>;

export function createComputedValues() {
  const entries = new Map<string, { node: ComputedNode; result: Promise<unknown> }>();
  return {
    /**
     * Returns the value of a computed key. The first read in a request runs `compute`, all others
     * share its outcome.
     *
     * @param from - node of the computed function that reads; `undefined` for a handler.
     * @throws Error if the two wait for each other; the message names the whole cycle.
     */
    read: async (
      key: string,
      from: ComputedNode | undefined,
      compute: (node: ComputedNode) => unknown,
    ): Promise<unknown> => {
      const known = entries.get(key);
      const node = known?.node ?? { key, waitsFor: new Set(), settled: false };
      if (from !== undefined) wait(from, node);
      if (known !== undefined) return known.result;
      // One microtask later: the first reads of `compute` call `read` again and must find the entry.
      const result = Promise.resolve()
        .then(() => compute(node))
        .finally(() => {
          node.settled = true;
        });
      entries.set(key, { node, result });
      return result;
    },
  };
}

/** Throws if `node` already waits for `from`, a deadlock. */
function wait(from: ComputedNode, node: ComputedNode): void {
  const path = waitingPath(node, from);
  if (path !== undefined) {
    const circle = [...path, node].map(({ key }) => key).join(" -> ");
    throw new Error(
      `computed config keys wait for each other: ${circle}; let one of them do without the next`,
    );
  }
  from.waitsFor.add(node);
}

/** Each node waits for the next. */
function waitingPath(start: ComputedNode, goal: ComputedNode): ComputedNode[] | undefined {
  const waiters = new Map<ComputedNode, ComputedNode | undefined>([[start, undefined]]);
  // The iterator also visits entries added meanwhile: a breadth-first search for the shortest path.
  for (const node of waiters.keys()) {
    if (node.settled) continue;
    if (node === goal) return pathTo(node, waiters);
    for (const next of node.waitsFor) {
      if (!waiters.has(next)) waiters.set(next, node);
    }
  }
  return undefined;
}

function pathTo(
  goal: ComputedNode,
  waiters: ReadonlyMap<ComputedNode, ComputedNode | undefined>,
): ComputedNode[] {
  const path: ComputedNode[] = [];
  for (let node: ComputedNode | undefined = goal; node !== undefined; node = waiters.get(node))
    path.unshift(node);
  return path;
}
