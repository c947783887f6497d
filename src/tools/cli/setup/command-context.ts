import type { Readable } from "node:stream";
import type { Clock } from "../../../base/process/clock.ts";

/** What the command works with, so that a test can give it others. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** What comes in on standard input; absent where nothing does. */
  readonly input?: Readable | undefined;
  /** Prints a line of the answer. */
  readonly print: (line: string) => void;
  /** Prints a line about what went wrong. */
  readonly complain: (line: string) => void;
  /** Shows how far it is, in the place of what it showed before; `""` shows nothing. Absent where nobody watches. */
  readonly progress?: (text: string) => void;
  /** Gives the signal by which whoever runs the command ends it between two steps. Default: none. */
  readonly stopping?: () => AbortSignal;
  /** Resolves after `ms`. */
  readonly wait: (ms: number) => Promise<void>;
  /** Asks whoever sits at the terminal; absent where nobody does. */
  readonly ask?: (question: string) => Promise<string>;
  /** The secret of the embedded stack; throws in production. */
  readonly developmentSecret: () => Promise<string>;
}
