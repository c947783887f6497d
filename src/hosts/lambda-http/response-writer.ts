import type { ResponseStream } from "./lazy-mode.ts";
import { type Streaming, streaming } from "./streaming.ts";

/** Size of the pieces of a long body, in bytes. */
const pieceBytes = 65_536;

/** Body of a response that streams. */
export type StreamedBody = Uint8Array | ReadableStream<Uint8Array | string> | undefined;

/** Writes a response to Lambda's stream, at the pace at which Lambda takes it. */
export class ResponseWriter {
  /** Bytes of the body that Lambda's stream has accepted. */
  bytes = 0;
  #stream: ResponseStream;
  /** Set once the stream has closed before its end. */
  #departure: DOMException | undefined = undefined;
  #turned: (() => void) | undefined = undefined;
  #left: (departure: DOMException) => void = () => undefined;
  readonly #whenLeft: (departure: DOMException) => void;

  /** @param whenLeft - called once if the stream closes before its end. */
  constructor(stream: ResponseStream, whenLeft: (departure: DOMException) => void) {
    this.#stream = stream;
    this.#whenLeft = whenLeft;
    this.#follow(stream);
  }

  get hasLeft(): boolean {
    return this.#departure !== undefined;
  }

  /** Passes on status and headers, which are sent with the first write. An `end` without one loses them. */
  begin(prelude: object): void {
    // Safe: a response stream comes from a runtime that streams.
    const { HttpResponseStream } = streaming() as Streaming;
    const stream = HttpResponseStream.from(this.#stream, prelude);
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.#follow(stream);
    }
    stream.write(new Uint8Array(0));
  }

  /** @throws the departure of the client, or the error of a body that streams. */
  async send(body: StreamedBody): Promise<void> {
    if (body instanceof Uint8Array) await this.#write(body);
    else if (body !== undefined) await this.#pass(body);
    this.#stream.end();
    while (!this.#stream.writableFinished) await this.#turn();
  }

  /** Cuts a response that is not whole. */
  destroy(): void {
    this.#stream.destroy();
  }

  #follow(stream: ResponseStream): void {
    const turn = () => this.#turned?.();
    const close = () => {
      if (stream.writableFinished || this.#departure !== undefined) return;
      this.#departure = new DOMException("The client has gone", "AbortError");
      this.#whenLeft(this.#departure);
      this.#left(this.#departure);
      turn();
    };
    for (const event of ["drain", "finish"]) stream.on(event, turn);
    for (const event of ["close", "error"]) stream.on(event, close);
  }

  async #pass(body: ReadableStream<Uint8Array | string>): Promise<void> {
    const reader = body.getReader();
    const cancel = (reason: unknown) => void reader.cancel(reason).catch(() => undefined);
    this.#left = cancel;
    try {
      for (;;) {
        const { done, value } = await reader.read();
        this.#assertOpen();
        if (done) return;
        await this.#write(typeof value === "string" ? Buffer.from(value) : value);
      }
    } catch (error) {
      cancel(error);
      throw error;
    }
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.byteLength; from += pieceBytes) {
      const piece = bytes.subarray(from, from + pieceBytes);
      if (!this.#stream.write(piece)) await this.#turn();
      this.bytes += piece.byteLength;
    }
  }

  /** Waits until Lambda's stream takes more, or has ended. */
  async #turn(): Promise<void> {
    this.#assertOpen();
    await new Promise<void>((resolve) => {
      this.#turned = resolve;
    });
    this.#assertOpen();
  }

  #assertOpen(): void {
    if (this.#departure !== undefined) throw this.#departure;
  }
}
