import type { SpanContext, Trace } from "../../base/request/trace.ts";
import type { Run, RunOutcome, RunParts } from "../../parts/once/claimed-run.ts";
import type { Effects } from "../handlers/effects.ts";
import { LateSpan } from "./late-span.ts";
import type { RequestEnd, RunEnd } from "./run-observer.ts";
import {
  isStored,
  messageAttributes,
  type Origin,
  producerAttributes,
  type RunSubject,
  requestAttributes,
  requestName,
  rootAttributes,
  routeOf,
  type TracedRun,
  triggerAttributes,
  type Verb,
} from "./span-attributes.ts";
import {
  type AroundOptions,
  fail,
  failed,
  headersOf,
  isValid,
  linksOf,
  record,
  remoteSpan,
  type SpanOptions,
  serverErrors,
  spanKinds,
  type Tracer,
  type TracerContext,
  type TracerSpan,
} from "./tracer.ts";

export class RunSpans {
  readonly #tracer: Tracer;
  readonly #scope: TracedRun;
  readonly #origin: () => Origin;
  readonly #subject: RunSubject | undefined;
  readonly #outer: TracerContext;
  /** Whether an instrumentation of Node's HTTP owns the span of this request. */
  readonly #isForeign: boolean;
  /** Span of the run. Starts at first use, because the caller determines which trace it joins. */
  readonly #late: LateSpan;
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

  within<Result>(work: () => Result): Result {
    if (this.#isForeign) return work();
    return this.#tracer.within(this.#tracer.withSpan(this.#outer, this.#late), work);
  }

  /** Returns the trace of the run, or `undefined` if no valid span exists. */
  trace(): (Trace & { readonly spanId: string }) | undefined {
    const context = this.#own().spanContext();
    if (!isValid(context)) return undefined;
    const { traceId, spanId, traceFlags } = context;
    const headers = () =>
      headersOf((this.#tracer.spanOf(this.#tracer.active()) ?? this.#own()).spanContext());
    return { traceId, spanId, sampled: (traceFlags & 1) === 1, headers };
  }

  routed(): void {
    if (this.#isForeign) this.#tracer.isHttp(this.#outer, routeOf(this.#scope));
  }

  part<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#around({ name, kind: spanKinds.internal }, work);
  }

  /** Takes a claim in a span, which ends when the work starts or if there is no work. */
  async claimed<Result>(
    run: Run<Result>,
    start: (run: Run<Result>) => Promise<RunOutcome<Result>>,
  ): Promise<RunOutcome<Result>> {
    if (run.claim === undefined) return start(run);
    const outer = this.#inner();
    const span = this.#tracer.start("claim", { kind: spanKinds.internal }, outer);
    let isSettled = false;
    // Only calls that take the claim are children of its span. Later ones run in the same context.
    const within = new LateSpan(() => span);
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

  committing(parts: RunParts): RunParts {
    return {
      signal: parts.signal,
      commit: (...given) => this.part("commit", () => parts.commit(...given)),
      commitApart: (...given) => this.part("commit", () => parts.commitApart(...given)),
      isCommitUncertain: () => parts.isCommitUncertain(),
      held: () => parts.held(),
      seed: () => parts.seed(),
    };
  }

  producing(effects: Effects): Effects {
    return {
      ...effects,
      publish: (type, payload, options) =>
        this.#produced("publish", type, true, () => effects.publish(type, payload, options)),
      enqueue: (name, payload, options) =>
        this.#produced("enqueue", name, isStored(options), () =>
          effects.enqueue(name, payload, options),
        ),
      deliver: (channel, message, options) =>
        this.#produced("deliver", channel, isStored(options), () =>
          effects.deliver(channel, message, options),
        ),
      step: (name, options, call) =>
        this.part(`step ${name}`, () => effects.step(name, options, call)),
    };
  }

  /** Sets the ID of the message being sent on the active span. */
  named(id: string): void {
    this.#tracer.spanOf(this.#tracer.active())?.setAttribute("messaging.message.id", id);
  }

  thrown(error: unknown, status: number): void {
    if (status >= serverErrors && this.#isNew(error)) record(this.#own(), error);
  }

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
    // The cast is safe: `#isForeign` is set only if this span exists.
    if (this.#isForeign) return outer as TracerSpan;
    return this.#isRequest() ? this.#startRequest(outer) : this.#startTask(outer);
  }

  /** An adopted handler can receive other events; a rejected request may have no head. */
  #isRequest(): boolean {
    const { headers, asked, handler } = this.#scope;
    return headers !== undefined && (asked !== undefined || handler === undefined);
  }

  #startRequest(outer: TracerSpan | undefined): TracerSpan {
    const scope = this.#scope;
    const { startMs: startTime } = scope;
    const attributes = requestAttributes(scope);
    const name = requestName(scope.asked?.method, routeOf(scope));
    // Another span of the process, such as a Lambda invocation's, is the server span.
    const { internal, server } = spanKinds;
    if (outer !== undefined)
      return this.#tracer.start(name, { attributes, startTime, kind: internal }, this.#outer);
    const { parent, link } = this.#origin();
    Object.assign(attributes, rootAttributes(scope, parent, link));
    const links = linksOf(remoteSpan(link));
    const options = { attributes, startTime, kind: server, links };
    return this.#tracer.start(name, options, this.#below(parent));
  }

  /** A child of the span that sent the message, with links to it and the one that received it. */
  #startTask(outer: TracerSpan | undefined): TracerSpan {
    const { startMs: startTime } = this.#scope;
    const handler = String(this.#scope.handler);
    const { kind = "run", about = handler } = this.#subject ?? {};
    const isMessage = kind === "event" || kind === "job" || kind === "delivery";
    const { parent } = this.#origin();
    const producer = remoteSpan(parent);
    const options: SpanOptions = {
      kind: isMessage ? spanKinds.consumer : spanKinds.internal,
      attributes: isMessage
        ? messageAttributes(this.#scope, about, String(this.#subject?.id))
        : triggerAttributes(this.#scope, kind === "schedule" ? "timer" : "other"),
      startTime,
    };
    const name = isMessage ? `process ${about}` : handler;
    return this.#tracer.start(
      name,
      producer === undefined ? options : { ...options, links: linksOf(producer, outer) },
      this.#below(parent),
    );
  }

  #below(parent: SpanContext | undefined): TracerContext {
    const span = remoteSpan(parent);
    return span === undefined ? this.#outer : this.#tracer.withSpan(this.#outer, span);
  }

  #produced<Result>(
    verb: Verb,
    about: string,
    isStored: boolean,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const attributes = producerAttributes(this.#scope, verb, about, isStored);
    return this.#around({ name: `${verb} ${about}`, kind: spanKinds.producer, attributes }, work);
  }

  #around<Result>(options: AroundOptions, work: () => Promise<Result>): Promise<Result> {
    return this.#tracer.around(this.#inner(), options, work, (span, error) =>
      this.#fail(span, error),
    );
  }

  #fail(span: TracerSpan, error: unknown): void {
    fail(span, error, this.#isNew(error));
  }

  /** Returns the active context, with the run's span if no span is active. */
  #inner(): TracerContext {
    const active = this.#tracer.active();
    return this.#tracer.spanOf(active) === undefined
      ? this.#tracer.withSpan(this.#outer, this.#own())
      : active;
  }

  /** Each error is recorded once, on the span in which it occurred. */
  #isNew(error: unknown): boolean {
    if (typeof error !== "object" || error === null) return true;
    this.#recorded ??= new WeakSet();
    const isNew = !this.#recorded.has(error);
    this.#recorded.add(error);
    return isNew;
  }
}
