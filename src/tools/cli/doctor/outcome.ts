/** Status of a check. `skip`: the check did not run. */
export type Status = "ok" | "warn" | "fail" | "skip";

export interface Outcome {
  readonly status: Status;
  /** State or problem that the check found. Never contains a secret. */
  readonly message: string;
  /** Commands that fix the problem, in order. */
  readonly fix: readonly string[];
}

/** Read-only check. */
export interface Check {
  readonly name: string;
  /** @throws CallError if a call fails. */
  run(): Promise<Outcome>;
}

export const fine = (message: string): Outcome => ({ status: "ok", message, fix: [] });
/** Outcome of something that works now but can fail later. */
export const doubtful = (message: string, ...fix: readonly string[]): Outcome => ({
  status: "warn",
  message,
  fix,
});
export const wrong = (message: string, ...fix: readonly string[]): Outcome => ({
  status: "fail",
  message,
  fix,
});
/** Outcome of a check that did not run. */
export const unchecked = (why: string): Outcome => ({
  status: "skip",
  message: `not checked: ${why}`,
  fix: [],
});

/**
 * Creates a check of a resource that another check finds. If there is no such resource, it refers
 * to that check.
 */
export function following<Found>(
  name: string,
  first: { readonly name: string; readonly find: () => Promise<Found | undefined> },
  look: (found: Found) => Outcome | Promise<Outcome>,
): Check {
  return {
    name,
    run: async () => {
      const found = await first.find().catch(() => undefined);
      return found === undefined ? unchecked(`see ${first.name}`) : look(found);
    },
  };
}

/** Memoizes an asynchronous lookup: all callers share one result. */
export function asked<Found>(ask: () => Promise<Found>): () => Promise<Found> {
  let answer: Promise<Found> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}
