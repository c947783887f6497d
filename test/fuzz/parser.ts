import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { Arbitrary } from "fast-check";

/** A parser of bytes that others choose, and the property that it keeps for each of them. */
export interface Parser {
  /** For the command line and the corpus: `trace-context`. */
  readonly name: string;
  /** The bytes, for the help of the command. */
  readonly reads: string;
  readonly inputs: Arbitrary<unknown>;
  /** Runs that take long are tried less often: the share of the usual number, at most 1. */
  readonly share: number;
  /** Rejects if the parser breaks its promise for the input. */
  holds(input: unknown): Promise<void>;
  /** Ends what `holds` has opened. */
  close(): Promise<void>;
}

interface Declared<Input> {
  readonly name: string;
  readonly reads: string;
  readonly inputs: Arbitrary<Input>;
  readonly share?: number;
  holds(input: Input): void | Promise<void>;
  close?(): Promise<void>;
}

export function parser<Input>(declared: Declared<Input>): Parser {
  const { name, reads, inputs, share = 1 } = declared;
  return {
    ...{ name, reads, inputs, share },
    // Safe: the inputs come from `inputs`, or once did and were added to the corpus.
    holds: async (input) => declared.holds(input as Input),
    close: async () => declared.close?.(),
  };
}

type ErrorClass = abstract new (...args: never[]) => Error;

export interface Documented {
  /** The classes of the errors that the parser documents. Default: none. */
  readonly errors?: readonly ErrorClass[];
  /** Texts that no error may show. */
  readonly secrets?: readonly string[];
}

export type Outcome<Value> =
  | { readonly value: Value; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: Error };

/** Two quoted texts, whose 80 characters may be control characters, which take six each, and a sentence. */
const longestMessage = 1_200;

/** Parses, and allows only documented errors, which must be short and must not show a secret. */
export async function outcomeOf<Value>(
  parse: () => Value | Promise<Value>,
  { errors = [], secrets = [] }: Documented = {},
): Promise<Outcome<Value>> {
  try {
    return { value: await parse() };
  } catch (error) {
    const isOwn = error instanceof Error && !(error instanceof assert.AssertionError);
    const isDocumented = isOwn && !isOfEngine(error) && errors.some((one) => error instanceof one);
    assert.ok(isDocumented, `an error that is not documented: ${inspect(error)}`);
    const { message } = error;
    assert.ok(
      message.length <= longestMessage,
      `a message of ${message.length} characters: ${message.slice(0, 200)}`,
    );
    showsNone(error, secrets);
    return { error };
  }
}

/** A TypeError of V8 is a defect even if a parser documents TypeErrors. */
function isOfEngine({ message }: Error): boolean {
  return /Cannot (?:read|set|mix|convert|destructure)|is not (?:a function|iterable|defined)/.test(
    message,
  );
}

export function showsNone(shown: unknown, secrets: readonly string[]): void {
  const text = inspect(shown, { depth: 8, maxStringLength: 100_000, maxArrayLength: 1_000 });
  for (const secret of secrets)
    assert.ok(!text.includes(secret), `it shows a secret: ${text.slice(0, 2_000)}`);
}
