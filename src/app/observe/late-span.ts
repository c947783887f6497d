import type { TracerSpan } from "./tracer.ts";

/** Span that delegates to another span and ignores `end`, because the run ends the real span. */
abstract class StandIn implements TracerSpan {
  abstract started(): TracerSpan;

  spanContext() {
    return this.started().spanContext();
  }

  isRecording(): boolean {
    return this.started().isRecording();
  }

  setAttribute(...given: Parameters<TracerSpan["setAttribute"]>): this {
    this.started().setAttribute(...given);
    return this;
  }

  setAttributes(...given: Parameters<TracerSpan["setAttributes"]>): this {
    this.started().setAttributes(...given);
    return this;
  }

  addEvent(...given: Parameters<TracerSpan["addEvent"]>): this {
    this.started().addEvent(...given);
    return this;
  }

  addLink(...given: Parameters<TracerSpan["addLink"]>): this {
    this.started().addLink(...given);
    return this;
  }

  addLinks(...given: Parameters<TracerSpan["addLinks"]>): this {
    this.started().addLinks(...given);
    return this;
  }

  setStatus(...given: Parameters<TracerSpan["setStatus"]>): this {
    this.started().setStatus(...given);
    return this;
  }

  updateName(...given: Parameters<TracerSpan["updateName"]>): this {
    this.started().updateName(...given);
    return this;
  }

  recordException(...given: Parameters<TracerSpan["recordException"]>): void {
    this.started().recordException(...given);
  }

  end(): void {}
}

/**
 * Span that starts at first use and that only its run ends. Drops the start function after the
 * start, so that contexts that outlive the run, as in keep-alive connections, do not retain the
 * run.
 */
export class LateSpan extends StandIn {
  #start: (() => TracerSpan) | undefined;
  #started: TracerSpan | undefined = undefined;

  constructor(start: () => TracerSpan) {
    super();
    this.#start = start;
  }

  started(): TracerSpan {
    if (this.#start !== undefined) {
      this.#started = this.#start();
      this.#start = undefined;
    }
    // The cast is safe: either the start function or the span is set.
    return this.#started as TracerSpan;
  }
}

/** Span that delegates to another span, which `turnTo` replaces for all contexts. */
export class TurningSpan extends StandIn {
  #span: TracerSpan;

  constructor(span: TracerSpan) {
    super();
    this.#span = span;
  }

  started(): TracerSpan {
    return this.#span;
  }

  turnTo(span: TracerSpan): void {
    this.#span = span;
  }
}
