import type { TracerSpan } from "./tracer.ts";

/** A span that stands for another, whose end is not its own to say. */
abstract class StandIn implements TracerSpan {
  /** The span itself. */
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
 * A span that is started when something is asked of it. Nobody but its run ends it. Once it is started it lets go of what it was
 * made of: a context outlives its run in whatever was opened there, such as a connection that stays open.
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
    // Safe: one of both is there.
    return this.#started as TracerSpan;
  }
}

/** A span that stands for one, and for another once it is told so: contexts that have it have that one then. */
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
