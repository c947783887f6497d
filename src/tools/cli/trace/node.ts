import type { StepStanding } from "../../../parts/once/step.ts";

/**
 * How something stands.
 *
 * | state | means |
 * |---|---|
 * | `done`, `replayed` | it is over; it was done before, and what is stored has answered |
 * | `failed` | its last attempt failed, and nothing says when the next is |
 * | `retrying` | it failed, and comes again at `until` |
 * | `dead-lettered`, `set-aside`, `gave-up` | keelson has given up on it |
 * | `waiting` | a job that is due at `until` |
 * | `running`, `interrupted` | its claim says that somebody works on it until `until`, or that who did is gone |
 * | `in-outbox`, `dispatched` | an event that waits for the bus, and one that the bus has taken |
 * | `taken`, `taken-back` | a claim; a job that was due later |
 * | `unknown` | a step or commit of which nobody knows how it ended |
 * | `unended`, `not-seen` | it began and has no end, or there is no line of it, in these logs |
 */
export type TraceState =
  | "done"
  | "replayed"
  | "failed"
  | "retrying"
  | "dead-lettered"
  | "set-aside"
  | "gave-up"
  | "waiting"
  | "running"
  | "interrupted"
  | "in-outbox"
  | "dispatched"
  | "taken"
  | "taken-back"
  | "unknown"
  | "unended"
  | "not-seen";

/** One thing of a tree, as `--json` prints it; absent is what nothing says. */
export interface TraceNode {
  /** `message`: an event or a job that is only named as a cause. */
  readonly kind:
    | "request"
    | "schedule"
    | "run"
    | "claim"
    | "commit"
    | "step"
    | "event"
    | "consumer"
    | "job"
    | "delivery"
    | "message";
  /** Method and route, a type, a handler, a channel. */
  readonly name: string;
  /** A consumer has that of its event, a step its key. */
  readonly id?: string | undefined;
  readonly state: TraceState;
  /** When it began, or was published or enqueued, in ISO 8601. */
  readonly at?: string | undefined;
  /** The same in milliseconds since the tree began. */
  readonly sinceMs?: number | undefined;
  readonly durationMs?: number | undefined;
  /** The status that a request was answered with. */
  readonly status?: number | undefined;
  /** Until when it is held, when it is due or comes again, in ISO 8601. */
  readonly until?: string | undefined;
  /** Why it failed, in the words of its line. */
  readonly reason?: string | undefined;
  /** The queue that it was given up in. */
  readonly queue?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly traceId?: string | undefined;
  /** Whether `state` is what the tables say. */
  readonly confirmed?: true | undefined;
  /** What lies between it and what it stands below is not seen. */
  readonly indirect?: true | undefined;
  /** It has another place in the tree, with all that follows from it. */
  readonly again?: true | undefined;
  /** In the order of time. */
  readonly attempts?: readonly TraceAttempt[] | undefined;
  readonly children: readonly TraceNode[];
}

/** One attempt of a run. */
export interface TraceAttempt {
  /** From 1, as its message counts them. */
  readonly attempt?: number | undefined;
  readonly state: "done" | "replayed" | "failed" | "handed-back" | "unended";
  readonly at: string;
  readonly sinceMs: number;
  readonly durationMs?: number | undefined;
  readonly status?: number | undefined;
  readonly reason?: string | undefined;
}

/** What tables say, as far as they were asked. */
export interface TableFacts {
  /** Rows of the outbox, by the ID of their event or job. */
  readonly rows: ReadonlyMap<string, RowFact>;
  /** Events and jobs that were looked for there. */
  readonly asked: ReadonlySet<string>;
  /** Claims by {@link runKey}; `undefined` where there is none. */
  readonly claims: ReadonlyMap<string, ClaimFact | undefined>;
  /** By their key. */
  readonly steps: ReadonlyMap<string, StepStanding>;
}

/** A row of the outbox: an event that waits for the bus, or a job that is due later. */
export interface RowFact {
  readonly kind: "event" | "job";
  readonly id: string;
  readonly name: string;
  /** When it was published; when it is due. */
  readonly atMs: number;
  /** Why it was set aside. */
  readonly aside?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly causedBy?: string | undefined;
  readonly origRequestId?: string | undefined;
  readonly traceId?: string | undefined;
}

/** The claim of a run. */
export type ClaimFact =
  | { readonly isDone: true }
  | { readonly isDone: false; readonly leaseUntilMs: number };

/** No tables were asked. */
export const noFacts: TableFacts = Object.freeze({
  rows: new Map(),
  asked: new Set<string>(),
  claims: new Map(),
  steps: new Map(),
});

/** Names a run of a subject. */
export function runKey(subject: string, handler: string): string {
  return JSON.stringify([subject, handler]);
}
