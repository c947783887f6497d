import type { StepStanding } from "../../../parts/once/step.ts";

export type TraceState =
  | "done"
  | "replayed" // done, with the stored result of an earlier run
  | "failed" // and no line gives the time of the next attempt
  | "retrying" // failed, and the next attempt is at `until`
  | "dead-lettered"
  | "set-aside"
  | "gave-up"
  | "waiting" // a job that is due at `until`
  | "running" // a process holds the claim until `until`
  | "interrupted" // a process held the claim and stopped
  | "in-outbox" // an event that waits for the bus
  | "dispatched" // an event that the bus has accepted
  | "taken" // an acquired claim
  | "taken-back" // a job that was canceled before it was due
  | "merged" // a job that did not run, because it equals the job `into`
  | "unknown" // of a step or commit
  | "unended"
  | "not-seen";

type Optional<Fields> = { readonly [Name in keyof Fields]?: Fields[Name] | undefined };

/** Node as `--json` prints it, without fields that logs and tables do not give. */
export interface TraceNode extends Optional<NodeFields> {
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
    | "message"; // an event or a job that lines name only as a cause
  /** Method and route, event type, handler or channel. */
  readonly name: string;
  readonly state: TraceState;
  readonly children: readonly TraceNode[];
}

interface AttemptFields {
  /** Delivery count of the message, from 1. */
  attempt: number;
  durationMs: number;
  status: number;
  reason: string;
}

interface NodeFields extends Omit<AttemptFields, "attempt"> {
  /** A consumer has the ID of its event, a step its key. */
  id: string;
  /** Start, or time of publishing or enqueuing, in ISO 8601. */
  at: string;
  /** Time from the start of the tree to `at`. */
  sinceMs: number;
  /** End of the lease, due time or time of the next attempt, in ISO 8601. */
  until: string;
  queue: string;
  /** ID of the equal job that ran instead. */
  into: string;
  tenantId: string;
  traceId: string;
  confirmed: true;
  /** The logs lack the nodes between this node and its parent. */
  indirect: true;
  /** The tree shows this node at another place, with its descendants. */
  again: true;
  attempts: readonly TraceAttempt[];
}

export interface TraceAttempt extends Optional<AttemptFields> {
  readonly state: "done" | "replayed" | "failed" | "handed-back" | "unended";
  readonly at: string;
  readonly sinceMs: number;
}

export interface TableFacts {
  /** Outbox rows by event or job ID. */
  readonly rows: ReadonlyMap<string, RowFact>;
  /** Events and jobs that were looked up in the outbox, by ID. */
  readonly asked: ReadonlySet<string>;
  /** Claims by {@link runKey}; `undefined` if the run has no claim. */
  readonly claims: ReadonlyMap<string, ClaimFact | undefined>;
  readonly steps: ReadonlyMap<string, StepStanding>;
}

export interface RowFact extends Optional<RowFields> {
  readonly kind: "event" | "job";
  readonly id: string;
  readonly name: string;
  /** Publish time of an event or due time of a job. */
  readonly atMs: number;
}

type RowFields = Record<"aside" | "tenantId" | "causedBy" | "origRequestId" | "traceId", string>;

export type ClaimFact =
  | { readonly isDone: true }
  | { readonly isDone: false; readonly leaseUntilMs: number };

export const noFacts: TableFacts = Object.freeze({
  rows: new Map(),
  asked: new Set<string>(),
  claims: new Map(),
  steps: new Map(),
});

export function runKey(subject: string, handler: string): string {
  return JSON.stringify([subject, handler]);
}
