/** Node in a request's wait-for graph: a computed key whose function was called. */
export interface ComputedNode {
  readonly key: string;
  readonly waitsFor: Set<ComputedNode>;
  /** The function has ended. Its node then waits for no other, even if it still reads. */
  settled: boolean;
}

export type ComputedValues = ReturnType<typeof createComputedValues>;

export function createComputedValues() {
  const entries = new Map<string, { node: ComputedNode; result: Promise<unknown> }>();
  return {
    /**
     * The first read in a request runs `compute`; all other reads share its outcome.
     * @param from - node of the computed key whose function reads; `undefined` if a handler reads.
     * @throws Error if computed keys wait for each other; the message names the whole cycle.
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
      // `compute` runs one microtask later, because it may call `read`, which must find the entry.
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

function waitingPath(
  node: ComputedNode,
  goal: ComputedNode,
  seen = new Set<ComputedNode>(),
): ComputedNode[] | undefined {
  if (node.settled || seen.has(node)) return undefined;
  if (node === goal) return [node];
  seen.add(node);
  for (const next of node.waitsFor) {
    const rest = waitingPath(next, goal, seen);
    if (rest !== undefined) return [node, ...rest];
  }
  return undefined;
}
