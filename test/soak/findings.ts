/** Violations that a run found, by check. */
export interface Findings {
  add(check: Check, what: string): void;
  /** Returns the number of violations of a check, and the first few. */
  of(check: Check): { readonly count: number; readonly first: readonly string[] };
}

/** All checks of the soak. */
export const checks = [
  "each write that was accepted happened exactly once",
  "a write without an answer happened at most once",
  "a refused write left nothing, and no event",
  "each event and each job of a write happened exactly once",
  "no event happened without its write",
  "a read shows each write that was accepted before",
  "a repeated write gets the answer of the first",
  "no write of configuration is lost or doubled",
  "each process that is running reads the last configuration",
  "no response has the ID of another tenant",
  "no line has the IDs of two tenants",
  "no row has the IDs of two tenants",
  "queues and the outbox are empty at the end",
  "no process ended by itself",
  "no process warned of leaked listeners",
  "processes that survived have given back their memory",
  "processes that survived have given back their handles",
  "processes that survived have given back their sockets",
  "processes that survived have given back their files",
  "processes that survived have given back their listeners",
] as const;

export type Check = (typeof checks)[number];

const firstCount = 5;

export function createFindings(): Findings {
  const found = new Map<Check, { count: number; first: string[] }>();
  return {
    add: (check, what) => {
      const known = found.get(check) ?? { count: 0, first: [] };
      known.count += 1;
      if (known.first.length < firstCount) known.first.push(what.slice(0, 600));
      found.set(check, known);
    },
    of: (check) => found.get(check) ?? { count: 0, first: [] },
  };
}
