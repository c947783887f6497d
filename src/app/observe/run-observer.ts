import type { User } from "../../base/identity/user.ts";
import type { Logger } from "../../base/log/logger.ts";

/**
 * Is told when each run of a process begins and how it ended: requests, consumers of events, jobs, deliveries, schedules and
 * `server.run`. A runtime without one does nothing for it.
 */
export interface RunObserver {
  /**
   * Nothing is known yet but what came with it. A connection that is upgraded, and a handler that a test calls without HTTP,
   * begin too and have no end.
   */
  began(run: ObservedRun): void;
  /** Once, after its answer is sent, or its message done. */
  ended(run: ObservedRun, end: RunEnd): void;
}

/** What an observer knows of a run: a part of its scope, the same object at its beginning and at its end. */
export interface ObservedRun {
  readonly requestId: string;
  /** Those of a request, as they were received; `undefined` for a run without one. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** What the host says of the request's connection; absent for a run without one. */
  readonly asked: { readonly isEncrypted?: boolean | undefined } | undefined;
  /** The full name of the handler, once it is known. */
  readonly handler: string | undefined;
  /** Its route, as it was declared: `GET /files/:id`. Absent for what has none. */
  readonly route: string | undefined;
  /** Anonymous, as long as it is not known whose the request is. */
  readonly user: User;
  /** When it began, in milliseconds since the epoch; 0 where nobody observes runs. */
  readonly startMs: number;
  /** Whether it is the first request of its process, as far as somebody observes runs. */
  isColdStart: boolean;
  /** Whether it was done before, so that what is stored answers. */
  readonly isReplayed: boolean;
  /** Its spans; absent where no tracer has registered itself. */
  readonly spans: { ended(end: RunEnd): void } | undefined;
  /** Writes its lines. */
  readonly log: Logger;
}

/** How a run ended. */
export type RunEnd = RequestEnd | TaskEnd;

/** How a request ended. */
export interface RequestEnd {
  readonly kind: "request";
  /** As received; `undefined` where the parser gave up before it was known. */
  readonly method: string | undefined;
  /** Of the answer that was made, also where nobody was there to read it. */
  readonly status: number;
  /** The body's, as far as it was sent. */
  readonly bytes: number;
  /** The connection or stream closed before the answer was out. */
  readonly isAborted: boolean;
}

/** How a run without an answer ended. */
export interface TaskEnd {
  readonly kind: "event" | "job" | "delivery" | "schedule" | "run";
  /** `handed-back`: another worker is running it. */
  readonly outcome: "processed" | "failed" | "handed-back";
  /** Which attempt it was, from 1; `undefined` where nobody counts. */
  readonly attempt?: number | undefined;
  /** Since when it waited, in milliseconds since the epoch: its message lay in the queue, its schedule was due. */
  readonly sinceMs?: number | undefined;
  /** The type of an event. */
  readonly event?: string | undefined;
  /** The channel of a delivery. */
  readonly channel?: string | undefined;
  /** For how long it is handed back, in milliseconds. */
  readonly afterMs?: number | undefined;
  /** Why it failed. */
  readonly error?: unknown;
}

/** Tells both, where there are two. */
export function observers(
  one: RunObserver | undefined,
  other: RunObserver | undefined,
): RunObserver | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    began: (scope) => {
      one.began(scope);
      other.began(scope);
    },
    ended: (scope, end) => {
      one.ended(scope, end);
      other.ended(scope, end);
    },
  };
}
