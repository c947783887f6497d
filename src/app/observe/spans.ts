import type { Clock } from "../../base/process/clock.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { SpanContext, Trace } from "../../base/request/trace.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { Run, RunOutcome, RunParts } from "../../parts/once/claimed-run.ts";
import type { Effects } from "../handlers/effects.ts";
import type { ServerOptions } from "../registry/options.ts";
import type { RunEnd, TaskEnd } from "./run-observer.ts";

/** Creates the spans of runs if an SDK is registered. */
export interface Tracing {
  spansOf(run: TracedRun, origin: () => Origin, subject: RunSubject | undefined): RunSpans;
  /** Runs work in a span below the active span. */
  around<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
  /**
   * Runs a POST to an external server in a span. `send` receives the `traceparent` and returns the
   * status of the answer.
   */
  posting(url: URL, send: (traceparent: string | undefined) => Promise<number>): Promise<number>;
  /** Returns the bus with spans, unless its client is already instrumented. */
  bus(bus: EventBus): EventBus;
  /** Returns the queue of due jobs with spans, unless its client is already instrumented. */
  queue(queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal">;
}

export interface TracedRun {
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly asked: AskedRequest | undefined;
  readonly handler: string | undefined;
  readonly route: string | undefined;
  readonly startMs: number;
  readonly runtime: {
    readonly clock: Clock;
    readonly variables: Variables;
    readonly server: { readonly options: Pick<ServerOptions, "basePath"> };
  };
}

export type AskedRequest = {
  readonly [Name in "method" | "path" | "ip" | "isEncrypted"]?: HttpRequest[Name] | undefined;
};

export interface RunSubject {
  readonly kind: TaskEnd["kind"];
  /** Event type, job name, schedule name or delivery channel. */
  readonly about: string;
  /** ID of the event, the job or the scheduled run. */
  readonly id: string;
}

export interface Origin {
  readonly parent?: SpanContext | undefined;
  readonly link?: SpanContext | undefined;
}

export interface RunSpans {
  /** Runs the work with the span of the run as the active span. */
  within<Result>(work: () => Result): Result;
  /** Returns the trace of the run, or `undefined` if no valid span exists. */
  trace(): (Trace & { readonly spanId: string }) | undefined;
  /** Called once the route of the run is known. */
  routed(): void;
  /** Takes a claim in a span, which ends when the work starts or if there is no work. */
  claimed<Result>(
    run: Run<Result>,
    start: (run: Run<Result>) => Promise<RunOutcome<Result>>,
  ): Promise<RunOutcome<Result>>;
  /** Adds a span to each commit. */
  committing(parts: RunParts): RunParts;
  /** Adds a span to each publish, enqueue, delivery and step. */
  producing(effects: Effects): Effects;
  /** Sets the ID of the message being sent on the active span. */
  named(id: string): void;
  thrown(error: unknown, status: number): void;
  ended(end: RunEnd): void;
}
