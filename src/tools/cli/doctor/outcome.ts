/** How something is: `skip` says that nobody has looked. */
export type Status = "ok" | "warn" | "fail" | "skip";

/** What came of a check. */
export interface Outcome {
  readonly status: Status;
  /** What is so, or what is wrong. Nothing secret is in it. */
  readonly message: string;
  /** The commands that mend it, in their order. */
  readonly fix: readonly string[];
}

/** Something to look at, without changing it. */
export interface Check {
  readonly name: string;
  /** @throws what it could not ask. */
  run(): Promise<Outcome>;
}

/** It is as it has to be. */
export const fine = (message: string): Outcome => ({ status: "ok", message, fix: [] });
/** It works, and may not always. */
export const doubtful = (message: string, ...fix: readonly string[]): Outcome => ({
  status: "warn",
  message,
  fix,
});
/** It does not work. */
export const wrong = (message: string, ...fix: readonly string[]): Outcome => ({
  status: "fail",
  message,
  fix,
});
/** Nobody has looked, and why. */
export const unchecked = (why: string): Outcome => ({
  status: "skip",
  message: `not checked: ${why}`,
  fix: [],
});

/** A check of what another one finds: where there is nothing to look at, the other says so. */
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

/** Asks once; all callers share the result. */
export function asked<Found>(ask: () => Promise<Found>): () => Promise<Found> {
  let answer: Promise<Found> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}
