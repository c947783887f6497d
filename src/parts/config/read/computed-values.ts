/** A computed key that is being, or has been, evaluated for one request: a node of its wait-for graph. */
export interface ComputedNode {
  /** The key's identifier. */
  readonly key: string;
  /** The nodes whose values this one's function has asked for. */
  readonly waitsFor: Set<ComputedNode>;
  /** Once it has a value, or has failed, it waits for nobody. */
  settled: boolean;
}

/** The computed values of one request and caller. */
export interface ComputedValues {
  /**
   * Returns the value of a computed key: of all reads of a request the first runs `compute`,
   * the others share its outcome.
   *
   * @param from - the node of the computed function that reads; `undefined` for a handler.
   * @throws Error where the two wait for each other, naming the whole circle.
   */
  read(
    key: string,
    from: ComputedNode | undefined,
    compute: (node: ComputedNode) => unknown,
  ): Promise<unknown>;
}

interface Entry {
  readonly node: ComputedNode;
  readonly result: Promise<unknown>;
}

/** Makes the computed values of one request, none of them evaluated yet. */
export function createComputedValues(): ComputedValues {
  const entries = new Map<string, Entry>();
  return {
    read: async (key, from, compute) => {
      const known = entries.get(key);
      const node = known?.node ?? { key, waitsFor: new Set(), settled: false };
      if (from !== undefined) wait(from, node);
      if (known !== undefined) return known.result;
      // `compute` starts a microtask later: its first reads may come back here, and must find the entry.
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

/** Lets `from` wait for `node`, unless `node` already waits for `from`: then neither would ever go on. */
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

/** The nodes from `start` to `goal`, both included, each waiting for the next; `undefined` where `start` does not wait for `goal`. */
function waitingPath(start: ComputedNode, goal: ComputedNode): ComputedNode[] | undefined {
  const waiters = new Map<ComputedNode, ComputedNode | undefined>([[start, undefined]]);
  // A Map's iteration goes on over what is added meanwhile: breadth first, so the shortest path.
  for (const node of waiters.keys()) {
    // A settled value waits for none, even if its function left reads behind.
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
