// State that handlers of the tests' server and the tests themselves share in a process.

/** Waits, failures and reports of handlers. */
export interface World {
  /** Handlers that were entered, as `<version> <what> <name>`. */
  readonly runs: string[];
  /** Names whose consumers throw. */
  readonly broken: Set<string>;
  /** Lets handlers of this name wait from now on. */
  hold(name: string): void;
  /** Lets them go on. */
  release(name: string): void;
  /** A promise that a handler awaits. */
  gate(name: string): Promise<void>;
}

/** Creates a {@link World}. */
export function createWorld(): World {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  return {
    runs: [],
    broken: new Set(),
    hold: (name) => void gates.set(name, Promise.withResolvers()),
    release: (name) => {
      gates.get(name)?.resolve();
      gates.delete(name);
    },
    gate: async (name) => gates.get(name)?.promise,
  };
}
