import type { User } from "../../base/identity/access.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { RunCost } from "../../base/request/ambient.ts";

/** Observes the end of every run. Without an observer, the runtime does no work for this. */
export interface RunObserver {
  /**
   * Called once the answer is sent or the message is done; never for upgraded connections, and
   * handlers that a test calls without HTTP.
   */
  ended(run: ObservedRun, end: RunEnd): void;
}

/** Part of a run's scope. */
export interface ObservedRun {
  readonly requestId: string;
  /** As received; `undefined`, like `asked`, for a run without a request. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly asked: { readonly isEncrypted?: boolean | undefined } | undefined;
  /** Full name, once it is known. */
  readonly handler: string | undefined;
  /** Declared route: `GET /files/:id`. */
  readonly route: string | undefined;
  /** Anonymous until the request is authenticated. */
  readonly user: User;
  /** Start time, in milliseconds since the epoch. 0 for a request without an observer. */
  readonly startMs: number;
  /** Whether the request is the first of its process. */
  readonly isColdStart: boolean;
  /** Whether the work was done before, so that its stored result is the answer. */
  readonly isReplayed: boolean;
  /** `undefined` without a registered tracer. */
  readonly spans: { ended(end: RunEnd): void } | undefined;
  readonly log: Logger;
  /** `undefined` without `log.cost`, and until the first call of AWS. */
  readonly cost?: RunCost | undefined;
}

export type RunEnd = RequestEnd | TaskEnd;

export interface RequestEnd {
  readonly kind: "request";
  /** `undefined` if the parser failed before it was known. */
  readonly method: string | undefined;
  /** Status of the prepared answer, even if the client disconnected. */
  readonly status: number;
  readonly bytes: number;
  /** Whether the connection or stream closed before the answer was sent. */
  readonly isAborted: boolean;
}

export interface TaskEnd {
  readonly kind: "event" | "job" | "delivery" | "schedule" | "run";
  /** `handed-back`: the run is already in progress in another worker. */
  readonly outcome: "processed" | "failed" | "handed-back";
  /** From 1. `undefined` if attempts are not counted. */
  readonly attempt?: number | undefined;
  /** When the message entered the queue or the schedule was due, in milliseconds since the epoch. */
  readonly sinceMs?: number | undefined;
  readonly event?: string | undefined;
  readonly channel?: string | undefined;
  /** Delay before a run that was handed back is retried, in milliseconds. */
  readonly afterMs?: number | undefined;
  readonly error?: unknown;
}

export function observers(
  one: RunObserver | undefined,
  other: RunObserver | undefined,
): RunObserver | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    ended: (scope, end) => {
      one.ended(scope, end);
      other.ended(scope, end);
    },
  };
}

/** Symbol under which any version 1 of OpenTelemetry's API keeps the registered SDK. */
export const openTelemetry = Symbol.for("opentelemetry.js.api.1");

export function isTracerRegistered(): boolean {
  return Object(Reflect.get(globalThis, openTelemetry)).trace !== undefined;
}

export const spanEnds: RunObserver = {
  ended: (run, end) => run.spans?.ended(end),
};

/** Returns the scheme that the client used, as reported by a proxy or else by the connection. */
export function schemeOf({
  headers,
  asked,
}: Pick<ObservedRun, "headers" | "asked">): "http" | "https" {
  const forwarded = headers?.["x-forwarded-proto"];
  if (forwarded === "http" || forwarded === "https") return forwarded;
  return asked?.isEncrypted === false ? "http" : "https";
}
