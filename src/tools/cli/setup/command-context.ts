import type { Readable } from "node:stream";
import type { Clock } from "../../../base/process/clock.ts";

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Opens standard input. Absent if nothing is piped in. */
  readonly input?: () => Readable;
  readonly print: (line: string) => void;
  /** To standard error. */
  readonly complain: (line: string) => void;
  /** Replaces the previous text; `""` clears it. Absent without a terminal. */
  readonly progress?: ((text: string) => void) | undefined;
  /** Aborts when the user stops the command, which ends between two steps. */
  readonly stopping?: () => AbortSignal;
  readonly wait: (ms: number) => Promise<void>;
  /** Absent without a terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Throws in production. */
  readonly developmentSecret: () => Promise<string>;
}
