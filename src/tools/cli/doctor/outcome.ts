export interface Outcome {
  readonly status: "ok" | "warn" | "fail" | "skip";
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
  (status: Outcome["status"]) =>
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

/** Formats a shell command. Quotes words with characters that a shell might interpret. */
export function command(...words: readonly string[]): string {
  return words
    .map((word) => (bare.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

/** Excludes a leading `=`, because the Z shell expands `=word` to the path of a command. */
const bare = /^[\w.,:/@%+-][\w.,:=/@%+-]*$/;

export function keelson(...words: readonly string[]): string {
  return command("npx", "keelson", ...words);
}

export function createKeyRing(parameter = "/app/key-ring"): string {
  return keelson("key-ring", "create", "--parameter", parameter);
}
