import type { SpanContext, Trace } from "../../base/request/trace.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import type { Run, RunOutcome, RunParts } from "../../parts/once/once-run.ts";
import type { Effects } from "../features/effects.ts";
import type { EnqueueOptions } from "../features/pipeline-context.ts";
import { type AroundOptions, around } from "./around.ts";
import { post, tracedBus, tracedQueue } from "./client-spans.ts";
import { LateSpan, TurningSpan } from "./late-span.ts";
import type { RequestEnd, RunEnd } from "./run-observer.ts";
import {
  messageAttributes,
  producerAttributes,
  requestAttributes,
  requestName,
  rootAttributes,
  routeOf,
  triggerAttributes,
  type Verb,
} from "./span-attributes.ts";
import { fail, record } from "./span-failure.ts";
import type { Origin, RunSpans, RunSubject, TracedRun, Tracing } from "./spans.ts";
import {
  failed,
  headersOf,
  isValid,
  remoteSpan,
  type SpanOptions,
  serverErrors,
  spanKinds,
  Tracer,
  type TracerContext,
  type TracerSpan,
} from "./tracer.ts";

/** Creates {@link Tracing} with what has registered itself. */
export function createTracing(): Tracing {
  return new TracerSpans();
}

class TracerSpans implements Tracing {
  readonly #tracer = new Tracer();

  /** Those of one run. */
  spansOf(scope: TracedRun, origin: () => Origin, subject: RunSubject | undefined): RunSpans {
    return new SpansOfRun(this.#tracer, scope, origin, subject);
  }

  /** A span around work, of whichever run asks for it. */
  around<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return around(
      this.#tracer,
      this.#tracer.active(),
      { name, kind: spanKinds.internal },
      work,
      (span, error) => fail(span, error, true),
    );
  }

  /** A span around a POST. */
  posting(url: URL, send: Parameters<Tracing["posting"]>[1]): Promise<number> {
    return post(this.#tracer, url, send);
  }

  /** The bus with spans. */
  bus(bus: EventBus): EventBus {
    return tracedBus(this.#tracer, bus);
  }

  /** A queue with spans. */
  queue(queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal"> {
    return tracedQueue(this.#tracer, queue);
  }
}

/** The spans of one run: its own, and those of its parts. */
class SpansOfRun implements RunSpans {
  readonly #tracer: Tracer;
  readonly #scope: TracedRun;
  readonly #origin: () => Origin;
  readonly #subject: RunSubject | undefined;
  /** What was active when it began. */
  readonly #outer: TracerContext;
  /** Whether an instrumentation of Node's HTTP has the span of this request. */
  readonly #isForeign: boolean;
  /** Started when it is first asked for: who calls decides which trace it is part of. */
  readonly #late: LateSpan;
  /** What has been recorded, once something is. */
  #recorded: WeakSet<object> | undefined = undefined;

  constructor(
    tracer: Tracer,
    scope: TracedRun,
    origin: () => Origin,
    subject: RunSubject | undefined,
  ) {
    this.#tracer = tracer;
    this.#scope = scope;
    this.#origin = origin;
    this.#subject = subject;
    this.#outer = tracer.active();
    this.#late = new LateSpan(() => this.#start());
    this.#isForeign = tracer.isHttp(this.#outer) && tracer.spanOf(this.#outer) !== undefined;
  }

  /** Runs the run, with its span as the active one. */
  within<Result>(work: () => Result): Result {
    if (this.#isForeign) return work();
    return this.#tracer.within(this.#tracer.withSpan(this.#outer, this.#late), work);
  }

  /** `undefined` where no span is one. */
  trace(): (Trace & { readonly spanId: string }) | undefined {
    const context = this.#own().spanContext();
    if (!isValid(context)) return undefined;
    const { traceId, spanId, traceFlags } = context;
    const headers = () =>
      headersOf((this.#tracer.spanOf(this.#tracer.active()) ?? this.#own()).spanContext());
    return { traceId, spanId, sampled: (traceFlags & 1) === 1, headers };
  }

  /** Its route is known. */
  routed(): void {
    if (this.#isForeign) this.#tracer.isHttp(this.#outer, routeOf(this.#scope));
  }

  /** A span around a part of the run. */
  part<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#around({ name, kind: spanKinds.internal }, work);
  }

  /** Taking its claim has a span, which ends when its work begins, or it is known that there is none to do. */
  async claimed<Result>(
    run: Run<Result>,
    start: (run: Run<Result>) => Promise<RunOutcome<Result>>,
  ): Promise<RunOutcome<Result>> {
    if (run.claim === undefined) return start(run);
    const outer = this.#inner();
    const span = this.#tracer.start("claim", { kind: spanKinds.internal }, outer);
    let isSettled = false;
    // What is called for the claim is below it, and what is called from then on is not, though it runs in the same context.
    const within = new TurningSpan(span);
    const settle = (outcome: string) => {
      if (isSettled) return;
      isSettled = true;
      span.setAttribute("keelson.claim.outcome", outcome).end();
      within.turnTo(this.#own());
    };
    const work: Run<Result>["work"] = (parts) => {
      settle("taken");
      return run.work(parts);
    };
    try {
      const outcome = await this.#tracer.within(this.#tracer.withSpan(outer, within), () =>
        start({ ...run, work }),
      );
      settle(outcome.kind);
      return outcome;
    } catch (error) {
      if (!isSettled) this.#fail(span, error);
      settle("failed");
      throw error;
    }
  }

  /** Its commit has a span. */
  committing(parts: RunParts): RunParts {
    return {
      signal: parts.signal,
      commit: (...given) => this.part("commit", () => parts.commit(...given)),
      commitApart: (...given) => this.part("commit", () => parts.commitApart(...given)),
      commitEnd: () => parts.commitEnd(),
      held: () => parts.held(),
      seed: () => parts.seed(),
    };
  }

  /** What it publishes, enqueues and delivers has a span each, and so have its steps. */
  producing(effects: Effects): Effects {
    return {
      publish: (type, payload) =>
        this.#produced("publish", type, true, () => effects.publish(type, payload)),
      enqueue: (name, payload, options) =>
        this.#produced("enqueue", name, isLater(options), () =>
          effects.enqueue(name, payload, options),
        ),
      unschedule: (jobId) => effects.unschedule(jobId),
      deliver: (channel, ...given) =>
        this.#produced("deliver", channel, true, () => effects.deliver(channel, ...given)),
      step: (name, options, call) =>
        this.part(`step ${name}`, () => effects.step(name, options, call)),
    };
  }

  /** The message that is being sent has its ID. */
  named(id: string): void {
    this.#tracer.spanOf(this.#tracer.active())?.setAttribute("messaging.message.id", id);
  }

  /** What a request has failed with. */
  thrown(error: unknown, status: number): void {
    if (status >= serverErrors && this.#isNew(error)) record(this.#own(), error);
  }

  /** The run is over. */
  ended(end: RunEnd): void {
    const span = this.#own();
    if (this.#isForeign) return;
    if (end.kind === "request") this.#requestEnded(span, end);
    else if (end.outcome === "failed") this.#fail(span, end.error);
    span.end(this.#scope.runtime.clock.now());
  }

  #requestEnded(span: TracerSpan, { method, status }: RequestEnd): void {
    const route = routeOf(this.#scope);
    span.updateName(requestName(method, route));
    span.setAttribute("http.response.status_code", status);
    if (route !== undefined) span.setAttribute("http.route", route);
    if (status >= serverErrors) span.setAttribute("error.type", String(status)).setStatus(failed);
  }

  #own(): TracerSpan {
    return this.#late.started();
  }

  #start(): TracerSpan {
    const outer = this.#tracer.spanOf(this.#outer);
    // Safe: that is why it counts as one.
    if (this.#isForeign) return outer as TracerSpan;
    return this.#isRequest() ? this.#startRequest(outer) : this.#startTask(outer);
  }

  /** An adopted handler has events that are none; what was turned away before its head was read is one. */
  #isRequest(): boolean {
    const { headers, asked, handler } = this.#scope;
    return headers !== undefined && (asked !== undefined || handler === undefined);
  }

  /** Inside a span of the process, such as that of an invocation, it is a part of that, and not a second server. */
  #startRequest(outer: TracerSpan | undefined): TracerSpan {
    const scope = this.#scope;
    const options = { attributes: requestAttributes(scope), startTime: scope.startMs };
    const name = requestName(scope.asked?.method, routeOf(scope));
    if (outer !== undefined)
      return this.#tracer.start(name, { ...options, kind: spanKinds.internal }, this.#outer);
    const { parent, link } = this.#origin();
    const attributes = { ...options.attributes, ...rootAttributes(scope, parent, link) };
    return this.#tracer.start(
      name,
      { ...options, attributes, kind: spanKinds.server, links: linksOf(remoteSpan(link)) },
      this.#below(parent),
    );
  }

  /** A child of what has asked for it, to which it is linked as well; what has received it is only linked. */
  #startTask(outer: TracerSpan | undefined): TracerSpan {
    const { startMs: startTime } = this.#scope;
    const handler = String(this.#scope.handler);
    const { kind = "run", about = handler } = this.#subject ?? {};
    const isMessage = kind === "event" || kind === "job" || kind === "delivery";
    const producer = remoteSpan(this.#origin().parent);
    const options: SpanOptions = {
      kind: isMessage ? spanKinds.consumer : spanKinds.internal,
      attributes: isMessage
        ? messageAttributes(this.#scope, about, String(this.#subject?.id))
        : triggerAttributes(this.#scope, kind === "schedule" ? "timer" : "other"),
      startTime,
    };
    const name = isMessage ? `process ${about}` : handler;
    if (producer === undefined) return this.#tracer.start(name, options, this.#outer);
    return this.#tracer.start(
      name,
      { ...options, links: linksOf(producer, outer) },
      this.#tracer.withSpan(this.#outer, producer),
    );
  }

  #below(parent: SpanContext | undefined): TracerContext {
    const span = remoteSpan(parent);
    return span === undefined ? this.#outer : this.#tracer.withSpan(this.#outer, span);
  }

  #produced<Result>(
    verb: Verb,
    about: string,
    isLater: boolean,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const attributes = producerAttributes(this.#scope, verb, about, isLater);
    return this.#around({ name: `${verb} ${about}`, kind: spanKinds.producer, attributes }, work);
  }

  #around<Result>(options: AroundOptions, work: () => Promise<Result>): Promise<Result> {
    return around(this.#tracer, this.#inner(), options, work, (span, error) =>
      this.#fail(span, error),
    );
  }

  #fail(span: TracerSpan, error: unknown): void {
    fail(span, error, this.#isNew(error));
  }

  /** What is active, or else its own span. */
  #inner(): TracerContext {
    const active = this.#tracer.active();
    return this.#tracer.spanOf(active) === undefined
      ? this.#tracer.withSpan(this.#outer, this.#own())
      : active;
  }

  /** Each error is recorded once: on the span where it happened. */
  #isNew(error: unknown): boolean {
    if (typeof error !== "object" || error === null) return true;
    this.#recorded ??= new WeakSet();
    const isNew = !this.#recorded.has(error);
    this.#recorded.add(error);
    return isNew;
  }
}

/** It is stored, and sent when it is due. */
function isLater({ delaySeconds, at }: EnqueueOptions = {}): boolean {
  return delaySeconds !== undefined || at !== undefined;
}

function linksOf(
  ...spans: readonly ({ spanContext(): ReturnType<TracerSpan["spanContext"]> } | undefined)[]
) {
  return spans.flatMap((span) => (span === undefined ? [] : [{ context: span.spanContext() }]));
}
