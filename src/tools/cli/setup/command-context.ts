import type { Readable } from "node:stream";
import type { Clock } from "../../../base/process/clock.ts";

/** Environment of a command, which tests replace. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Standard input; absent if nothing is piped in. */
  readonly input?: Readable | undefined;
  /** Prints a line to standard output. */
  readonly print: (line: string) => void;
  /** Prints a line to standard error. */
  readonly complain: (line: string) => void;
  /** Shows progress in place of the previous one; `""` clears it. Absent without a terminal. */
  readonly progress?: (text: string) => void;
  /**
   * Returns a signal that aborts when the user stops the command. The command ends between two
   * steps. Default: the command cannot be stopped.
   */
  readonly stopping?: () => AbortSignal;
  /** Resolves after `ms` milliseconds. */
  readonly wait: (ms: number) => Promise<void>;
  /** Asks the user at the terminal; absent without a terminal. */
  readonly ask?: (question: string) => Promise<string>;
  /** Returns the secret of the embedded stack. Throws in production. */
  readonly developmentSecret: () => Promise<string>;
}
