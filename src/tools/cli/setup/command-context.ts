import type { Readable } from "node:stream";
import type { Clock } from "../../../base/process/clock.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Opens standard input. Absent if nothing is piped in. */
  readonly input?: () => Readable;
  readonly print: (line: string) => void;
  /** Prints a line to standard error. */
  readonly complain: (line: string) => void;
  /**
   * Shows a progress text in place of the previous text; `""` clears it. Absent without a terminal.
   */
  readonly progress?: ((text: string) => void) | undefined;
  /**
   * Returns a signal that aborts when the user stops the command. It then ends between two steps.
   */
  readonly stopping?: () => AbortSignal;
  readonly wait: (ms: number) => Promise<void>;
  /** Asks the user a question. Absent without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Returns the embedded stack's secret. Throws in production. */
  readonly developmentSecret: () => Promise<string>;
}
