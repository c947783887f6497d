import type { Readable } from "node:stream";
import type { Clock } from "../../../base/process/clock.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Opens standard input. Absent if nothing is piped in. */
  readonly input?: () => Readable;
  readonly print: (line: string) => void;
  /** Prints to standard error. */
  readonly complain: (line: string) => void;
  /** Replaces the progress text; `""` clears it. Absent without a terminal. */
  readonly progress?: ((text: string) => void) | undefined;
  /**
   * Returns a signal that aborts when the user stops the command. It ends after its current step.
   */
  readonly stopping?: () => AbortSignal;
  readonly wait: (ms: number) => Promise<void>;
  /** Asks a question. Absent without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Secret of the embedded stack. Throws in production. */
  readonly developmentSecret: () => Promise<string>;
}
