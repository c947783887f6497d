import type { TracerSpan } from "./tracer.ts";

/** A span that is started when something is asked of it. Nobody but its run ends it. */
export class LateSpan implements TracerSpan {
  readonly #span: () => TracerSpan;

  constructor(span: () => TracerSpan) {
    this.#span = span;
  }

  spanContext() {
    return this.#span().spanContext();
  }

  isRecording(): boolean {
    return this.#span().isRecording();
  }

  setAttribute(...given: Parameters<TracerSpan["setAttribute"]>): this {
    this.#span().setAttribute(...given);
    return this;
  }

  setAttributes(...given: Parameters<TracerSpan["setAttributes"]>): this {
    this.#span().setAttributes(...given);
    return this;
  }

  addEvent(...given: Parameters<TracerSpan["addEvent"]>): this {
    this.#span().addEvent(...given);
    return this;
  }

  addLink(...given: Parameters<TracerSpan["addLink"]>): this {
    this.#span().addLink(...given);
    return this;
  }

  addLinks(...given: Parameters<TracerSpan["addLinks"]>): this {
    this.#span().addLinks(...given);
    return this;
  }

  setStatus(...given: Parameters<TracerSpan["setStatus"]>): this {
    this.#span().setStatus(...given);
    return this;
  }

  updateName(...given: Parameters<TracerSpan["updateName"]>): this {
    this.#span().updateName(...given);
    return this;
  }

  recordException(...given: Parameters<TracerSpan["recordException"]>): void {
    this.#span().recordException(...given);
  }

  end(): void {}
}
