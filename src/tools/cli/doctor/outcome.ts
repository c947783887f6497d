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

const outcome =
  (status: Status) =>
  (message: string, ...fix: readonly string[]): Outcome => ({ status, message, fix });

export const fine = outcome("ok");
export const doubtful = outcome("warn");
export const wrong = outcome("fail");
export const unchecked = (why: string) => outcome("skip")(`not checked: ${why}`);

export interface Found<Thing> {
  readonly name: string;
  readonly find: () => Promise<Thing | undefined>;
}

/** Passes what another check found to `look`, or refers to that check if it found nothing. */
export async function after<Thing>(
  { name, find }: Found<Thing>,
  look: (found: Thing) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  const found = await find().catch(() => undefined);
  return found === undefined ? unchecked(`see ${name}`) : look(found);
}

export function asked<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let answer: Promise<Answer> | undefined;
  return () => {
    answer ??= ask();
    return answer;
  };
}
