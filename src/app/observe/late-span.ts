import type { TracerSpan } from "./tracer.ts";

/**
 * Delegates to a span that starts at first use, and that only its run ends. Drops the start function
 * then, so that contexts that outlive the run, as in keep-alive connections, do not retain it.
 */
export class LateSpan implements TracerSpan {
  #start: (() => TracerSpan) | undefined;
  #started: TracerSpan | undefined = undefined;

  constructor(start: () => TracerSpan) {
    this.#start = start;
  }

  started(): TracerSpan {
    if (this.#start !== undefined) this.turnTo(this.#start());
    // The cast is safe: either the start function or the span is set.
    return this.#started as TracerSpan;
  }

  /** Delegates to `span` from now on, in all contexts. */
  turnTo(span: TracerSpan): void {
    this.#started = span;
    this.#start = undefined;
  }

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
