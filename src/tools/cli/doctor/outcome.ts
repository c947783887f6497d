export type Status = "ok" | "warn" | "fail" | "skip";

export interface Outcome {
  readonly status: Status;
  /** Never contains a secret. */
  readonly message: string;
  readonly fix: readonly string[];
}

export interface Check {
  readonly name: string;
  /** @throws CallError if a call fails. */
  run(): Promise<Outcome>;
}

export const fine = (message: string): Outcome => ({ status: "ok", message, fix: [] });
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
export const unchecked = (why: string): Outcome => ({
  status: "skip",
  message: `not checked: ${why}`,
  fix: [],
});

/** Looks at what another check finds; refers to that check if it finds nothing. */
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

export function asked<Found>(ask: () => Promise<Found>): () => Promise<Found> {
  let answer: Promise<Found> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}
