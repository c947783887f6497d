import type { Awaitable } from "../handlers/handler.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";

export interface Schedule {
  readonly name: string;
  /** Runs the schedule if it is due. Never throws. */
  look(options?: LookOptions): Promise<Looked>;
}

export interface LookOptions {
  /** End of the process, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
  /** Time from which a schedule without a record is due. Default: now. */
  readonly sinceMs?: number;
}

export interface Looked {
  readonly kind:
    | "idle"
    /** An earlier attempt failed, and the next is not due yet. */
    | "waiting"
    | "fired"
    /** Another process is doing this run, or has done it. */
    | "elsewhere"
    /** The run, or the check, failed and will be retried. The error is logged. */
    | "failed"
    | "gave-up";
  /** Time of the next check, in milliseconds since the epoch. */
  readonly nextMs: number;
  readonly reason?: string;
}

/** Differences between a schedule and the part of one for one time zone of tenants. */
export interface ScheduleVariant {
  /** Added to its record's key and to the claims of its runs. */
  readonly zone?: string | undefined;
  /** Time from which it is due if it has no record. */
  readonly sinceMs: (lookedMs: number) => Awaitable<number>;
  readonly run: (ctx: PipelineContext, fire: BegunRun) => Awaitable<unknown>;
}

/** A run of a schedule for tenants in one time zone. */
export interface BegunRun {
  readonly atMs: number;
  /** Last tenant of the last page that an earlier attempt has sent. */
  readonly sentTo: string | undefined;
  /** Notes the last tenant of a page that is sent. @throws ConflictError if the run was taken over. */
  readonly advance: (tenantId: string) => Promise<void>;
}
