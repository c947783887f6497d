/** A balancer as small as it can be: it sends to the instances in turn that were ready when it last asked. */
export interface Balancer {
  add(port: number): void;
  remove(port: number): void;
  /** The next instance; waits if no instance is ready. */
  next(): Promise<number>;
  /** Resolves when this instance is ready. */
  ready(port: number): Promise<void>;
  stop(): void;
}

/** Asks each instance for its readiness every `everyMs`. */
export function startBalancer(everyMs = 100): Balancer {
  const instances = new Map<number, boolean>();
  let turn = 0;
  let changed: () => void = () => {};
  let change = new Promise<void>((resolve) => {
    changed = resolve;
  });
  const set = (port: number, isReady: boolean) => {
    if (!instances.has(port) || instances.get(port) === isReady) return;
    instances.set(port, isReady);
    changed();
    change = new Promise((resolve) => {
      changed = resolve;
    });
  };
  const timer = setInterval(() => {
    for (const port of instances.keys())
      void isReady(port, everyMs * 10).then((ready) => set(port, ready));
  }, everyMs);
  return {
    add: (port) => void instances.set(port, false),
    remove: (port) => void instances.delete(port),
    next: async () => {
      for (;;) {
        const ready = [...instances].filter(([, isUp]) => isUp);
        const chosen = ready[turn++ % ready.length];
        if (chosen !== undefined) return chosen[0];
        await change;
      }
    },
    ready: async (port) => {
      while (instances.get(port) !== true) await change;
    },
    stop: () => clearInterval(timer),
  };
}

async function isReady(port: number, withinMs: number): Promise<boolean> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/health/ready`, {
      signal: AbortSignal.timeout(withinMs),
    });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
