import type { Clock } from "../../base/process/clock.ts";
import type { Variables } from "../../base/process/environment.ts";
import type { SpanContext, Trace } from "../../base/request/trace.ts";
import type { HttpRequest } from "../../parts/http/message.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { Run, RunOutcome, RunParts } from "../../parts/once/once-run.ts";
import type { Effects } from "../features/effects.ts";
import type { ServerOptions } from "../registry/options.ts";
import type { RunEnd, TaskEnd } from "./run-observer.ts";

/** Makes the spans of runs, where an SDK has registered itself. */
export interface Tracing {
  /** Those of one run. */
  spansOf(run: TracedRun, origin: () => Origin, subject: RunSubject | undefined): RunSpans;
  /** A span around work, of whichever run asks for it. */
  around<Result>(name: string, work: () => Promise<Result>): Promise<Result>;
  /** A span around a POST to somebody else's server; `send` gets its `traceparent`, and gives the status of the answer. */
  posting(url: URL, send: (traceparent: string | undefined) => Promise<number>): Promise<number>;
  /** The bus with spans, where an instrumentation of its client makes none. */
  bus(bus: EventBus): EventBus;
  /** The queue of jobs that are due, likewise. */
  queue(queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal">;
}

/** What a tracer looks at of a run. */
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

/** A request as its host has received it, as far as it was read. */
export type AskedRequest = {
  readonly [Name in "method" | "path" | "ip" | "isEncrypted"]?: HttpRequest[Name] | undefined;
};

/** What a run is about that no request asks for. */
export interface RunSubject {
  readonly kind: TaskEnd["kind"];
  /** The type of an event, the name of a job or a schedule, the channel of a delivery. */
  readonly about: string;
  /** The ID of the event, the job or the fire. */
  readonly id: string;
}

/** Where a run comes from. */
export interface Origin {
  /** What it is a part of. */
  readonly parent?: SpanContext | undefined;
  /** What it has to do with. */
  readonly link?: SpanContext | undefined;
}

/** The spans of one run: its own, and those of its parts. */
export interface RunSpans {
  /** Runs the run, with its span as the active one. */
  within<Result>(work: () => Result): Result;
  /** `undefined` where no span is one. */
  trace(): (Trace & { readonly spanId: string }) | undefined;
  /** Its route is known. */
  routed(): void;
  /** Taking its claim has a span, which ends when its work begins, or it is known that there is none to do. */
  claimed<Result>(
    run: Run<Result>,
    start: (run: Run<Result>) => Promise<RunOutcome<Result>>,
  ): Promise<RunOutcome<Result>>;
  /** Its commit has a span. */
  committing(parts: RunParts): RunParts;
  /** The effects of the run, of which what is published, enqueued and delivered has a span each, and each step. */
  producing(effects: Effects): Effects;
  /** The message that is being sent has its ID. */
  named(id: string): void;
  /** What a request has failed with. */
  thrown(error: unknown, status: number): void;
  /** The run is over. */
  ended(end: RunEnd): void;
}
