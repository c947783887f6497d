import type { IncomingMessage, ServerResponse } from "node:http";
import type { RunObserver } from "../../app/observe/run-observer.ts";
import { type Sender, serve } from "../../app/run/pipeline.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { type SentBody, sendPieces, sentBytes, type WaitingBytes } from "./body-pieces.ts";
import { type HeldBytes, holdBytes } from "./byte-budget.ts";
import { bytesRead, type Connection, type OpenRequest } from "./connections.ts";
import { headersOf, noBytes, splitTarget } from "./http-request.ts";
import type { InFlightLimit, LimitedRequest } from "./in-flight-limit.ts";
import { lingerAfterAnswer } from "./lingering-close.ts";
import { receiveBody } from "./receive-body.ts";
import { reportCut } from "./report-cut.ts";
import { isSmallBody, readRest } from "./rest-of-body.ts";
import type { Beginning, Serving } from "./serving.ts";

interface Place {
  readonly connection: Connection;
  readonly inFlight: InFlightLimit;
}

/**
 * HTTP/1.1 request and its response. An object with methods instead of closures: a dozen functions
 * per request, each retaining what it uses, took a tenth of the request's time (measured by the
 * benchmark `http-no-log`).
 */
export class Exchange implements HttpRequest, OpenRequest, Sender, LimitedRequest, WaitingBytes {
  requestId = "";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly ip: string | undefined;
  readonly gatewayClaims = undefined; // a container does not trust claims of a gateway
  readonly nowMs: number | undefined;
  isStalled = false;
  left = 2;
  heldBytes = 0;
  hasLeft = false;
  isAhead = false;
  drop: (() => void) | undefined = undefined;
  readonly #serving: Serving;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: Connection;
  readonly #inFlight: InFlightLimit;
  readonly #refuse: (() => PipelineError) | undefined;
  readonly #expectsContinue: boolean;
  #departure: AbortController | undefined = undefined;
  #abortReason: unknown = undefined;
  #scope: RequestScope | undefined = undefined;
  #held: HeldBytes | undefined = undefined;
  /** Bytes sent of the response body; set only if there is an observer. */
  #sent: SentBody | undefined = undefined;

  constructor(
    serving: Serving,
    { connection, inFlight }: Place,
    message: IncomingMessage,
    response: ServerResponse,
    { refuse, expectsContinue }: Beginning,
  ) {
    // Safe: Node always sets both on a server; the type is shared with the client.
    const { method, url } = message as IncomingMessage & {
      readonly method: string;
      readonly url: string;
    };
    const { path, query } = splitTarget(url);
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = headersOf(message);
    this.ip = message.socket.remoteAddress;
    this.#refuse = refuse;
    const { observer, clock } = serving.runtime;
    this.nowMs = observer === undefined ? undefined : clock.now();
    this.#serving = serving;
    this.#message = message;
    this.#response = response;
    this.#connection = connection;
    this.#inFlight = inFlight;
    this.#expectsContinue = expectsContinue;
  }

  get isEncrypted(): boolean {
    return "encrypted" in this.#message.socket;
  }

  get refusal(): PipelineError | undefined {
    return this.#refuse?.();
  }

  get log(): Logger | undefined {
    return this.#scope?.log;
  }

  /**
   * Abort signal, created on demand: one read may bring thousands of requests, and most only wait.
   */
  get signal(): AbortSignal {
    if (this.#departure === undefined) {
      this.#departure = new AbortController();
      if (this.#abortReason !== undefined) this.#departure.abort(this.#abortReason);
    }
    return this.#departure.signal;
  }

  abort(reason: unknown): void {
    this.#abortReason ??= reason;
    this.#departure?.abort(reason);
  }

  readBody(limitBytes: number): Uint8Array | Promise<Uint8Array> {
    const { bodyFailure } = this.#connection;
    if (bodyFailure !== undefined && !this.#message.complete) return Promise.reject(bodyFailure);
    if (this.#expectsContinue) this.#response.writeContinue();
    const { "content-length": length, "transfer-encoding": encoding } = this.headers;
    if (encoding === undefined && (length === undefined || length === "0")) return noBytes;
    this.#held = holdBytes(this.#serving.bodies);
    return receiveBody(this.#message, limitBytes, this.#connection, this.#held);
  }

  work(): Promise<void> {
    return serve(this.#serving, this, this);
  }

  ended(): void {
    this.#held?.release();
    const { observer } = this.#serving.runtime;
    if (observer !== undefined) this.#tell(observer);
  }

  /** Reports the request, unless it never ran. */
  #tell(observer: RunObserver): void {
    if (this.#sent === undefined) return;
    const { statusCode: status, writableFinished: isWhole } = this.#response;
    const bytes = sentBytes(this.#sent, isWhole);
    // Safe: `send` sets the scope before `#sent`.
    observer.ended(this.#scope as RequestScope, {
      kind: "request",
      method: this.method,
      status,
      bytes,
      isAborted: !isWhole,
    });
  }

  send(answer: HttpResponse, scope: RequestScope): Promise<void> | undefined {
    this.#scope = scope;
    if (scope.runtime.observer !== undefined) this.#sent = { bytes: 0, atOnce: 0 };
    if (this.#response.socket === null) return this.#sendInTurn(answer);
    this.#inFlight.answered(this);
    return this.#sendNow(answer);
  }

  /**
   * Sends a response after those to earlier requests. Waits here and not in Node, which cannot drop
   * a waiting response before its socket has closed. A waiting stream is not read.
   */
  async #sendInTurn(answer: HttpResponse): Promise<void> {
    const { body } = answer;
    const isStream = body instanceof ReadableStream;
    const bytes = isStream ? streamBytes : (body?.length ?? 0);
    this.hold(bytes);
    if (!isStream) this.#inFlight.answered(this);
    if (!this.hasLeft && !this.#connection.unread.isCut) {
      await new Promise<void>((resolve) => {
        this.drop = resolve;
        this.#response.once("socket", () => resolve());
      });
      this.drop = undefined;
    }
    if (this.#response.socket === null) {
      // The client has gone, so an error of the cancellation does not matter.
      if (isStream) await body.cancel().catch(() => undefined);
      return;
    }
    this.release(bytes);
    await this.#sendNow(answer);
  }

  #sendNow(answer: HttpResponse): Promise<void> | undefined {
    this.#end();
    try {
      const streamed = this.#write(answer);
      return streamed?.catch((error) => this.#cut(error));
    } catch (error) {
      this.#cut(error);
      return undefined;
    }
  }

  /** Writes the response: synchronously, except a stream or a long body whose bytes are counted. */
  #write({ status, headers, cookies, body }: HttpResponse): Promise<void> | undefined {
    const response = this.#response;
    const sent = this.#sent;
    // One call for all headers, because Node would keep a table of headers that are set one by one.
    response.writeHead(
      status,
      cookies.length > 0 ? { ...headers, "set-cookie": [...cookies] } : headers,
    );
    if (body === undefined || this.method === "HEAD") {
      response.end();
      return undefined;
    }
    if (typeof body !== "string" && !(body instanceof Uint8Array)) {
      return sendPieces(body, response, pieceBytes, sent ?? { bytes: 0, atOnce: 0 }, this);
    }
    const length = sent === undefined ? 0 : Buffer.byteLength(body);
    if (sent !== undefined && length > pieceBytes) {
      this.hold(length);
      const bytes = typeof body === "string" ? Buffer.from(body) : body;
      // If the client leaves during a fixed-length response, nothing is logged.
      return sendPieces(bytes, response, pieceBytes, sent).catch(() => undefined);
    }
    if (sent !== undefined) sent.atOnce = length;
    response.end(body);
    const { writableLength } = response; // bytes that the kernel has not taken
    if (writableLength > 0) this.hold(writableLength);
    return undefined;
  }

  hold(bytes: number): void {
    this.#inFlight.hold(this, bytes);
  }

  release(bytes: number): void {
    this.#inFlight.release(this, bytes);
  }

  leave(): void {
    const connection = this.#connection;
    if (!connection.requests.delete(this)) return;
    this.drop?.();
    const { socket } = this.#message;
    connection.idleAtBytes = bytesRead(socket);
    if (!this.#response.writableFinished) this.abort(connection.departure());
    if (connection.isBroken && connection.requests.size === 0) socket.destroySoon();
    this.#inFlight.leave(this);
  }

  /**
   * Closes the connection after this response, if no other follows, or reads the rest of the body.
   */
  #end(): void {
    const connection = this.#connection;
    const { runtime, settings } = this.#serving;
    const { draining } = runtime.lifecycle;
    const message = this.#message;
    const { complete, socket } = message;
    // Pipelined requests run concurrently, so the connection closes only with the last response.
    const isLatest = [...connection.requests].at(-1) === this;
    const isLast = (draining.aborted || connection.isBroken) && isLatest;
    if (!isLast && !complete && this.#isRestSmall()) {
      readRest(socket, connection, message, settings.requestTimeoutMs);
      return;
    }
    if (isLast || !complete) {
      connection.isClosing = true;
      this.#response.setHeader("connection", "close");
    }
    // Closes in stages, because the client may still send an unwanted body or unread requests.
    if (!complete || (isLast && this.#inFlight.hadToWait)) {
      lingerAfterAnswer(socket, connection, message, settings.requestTimeoutMs, draining);
    }
  }

  /**
   * Returns whether the rest of an unwanted body is small and will arrive, so that it can be read.
   */
  #isRestSmall(): boolean {
    // A client that waits for `100 Continue` gets it only if the body is read.
    const isAwaited = !this.#expectsContinue || this.#held !== undefined;
    return (
      isAwaited &&
      !this.#connection.isBroken &&
      isSmallBody(this.#message, this.#held?.mostBytes ?? 0)
    );
  }

  #cut(error: unknown): void {
    // Safe: `send` sets the scope before it can cut the response.
    const { log } = this.#scope as RequestScope;
    if (!this.isStalled) reportCut(log, error, this.signal);
    this.#response.destroy();
  }
}

/** Bytes that a waiting stream is assumed to hold: the pipeline has read its start. */
const streamBytes = 1_048_576;

/** Size of the pieces in which a long, counted body is written, in bytes. */
const pieceBytes = 65_536;
