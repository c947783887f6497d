/** Outcome of a write, as its client knows it. `unknown`: without an answer. */
export type WriteOutcome = "accepted" | "refused" | "unknown";

/** A write of configuration. Its value is found nowhere else. */
export interface ConfigWrite {
  readonly tenant: number;
  readonly value: number;
  readonly isAccepted: boolean;
}

/** Requests that clients have sent, and their outcomes. The checks compare these with the stored rows. */
export interface Ledger {
  readonly entries: Map<string, WriteOutcome>;
  readonly configWrites: ConfigWrite[];
  /** Attempts that had to be repeated. */
  retries: number;
}

export const createLedger = (): Ledger => ({ entries: new Map(), configWrites: [], retries: 0 });
