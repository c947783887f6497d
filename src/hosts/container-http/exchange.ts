import type { IncomingMessage, ServerResponse } from "node:http";
import { type Sender, serve } from "../../app/run/pipeline.ts";
import type { RequestScope } from "../../app/runtime/scope.ts";
import type { PipelineError } from "../../base/errors/errors.ts";
import type { Logger } from "../../base/log/logger.ts";
import type { HttpRequest, HttpResponse } from "../../parts/http/message.ts";
import { clientAddress } from "./client-address.ts";
import { bytesRead, type Connection, type OpenRequest } from "./connections.ts";
import type { Gate } from "./gate.ts";
import type { Serving } from "./http-options.ts";
import { type InFlightLimit, isAbandoned, type LimitedRequest } from "./in-flight-limit.ts";
import { isSmallBody, lingerAfterAnswer, readRest } from "./lingering-close.ts";
import { type HeldBytes, noBytes, receiveBody } from "./receive-body.ts";
import { refusals } from "./refusals.ts";
import { headersOf, platformFields, splitTarget } from "./request-head.ts";
import { reportCut, type SentBody, sendPieces, type WaitingBytes } from "./send-body.ts";

/** HTTP/1.1 request and response. A class, as closures took a tenth of its time (`http-no-log`). */
export class Exchange implements HttpRequest, OpenRequest, Sender, LimitedRequest, WaitingBytes {
  requestId = "";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly ip: string | undefined;
  readonly gatewayClaims = undefined; // a container does not trust claims of a gateway
  readonly nowMs: number | undefined;
  readonly logFields: HttpRequest["logFields"];
  isStalled = false;
  left = 2;
  heldBytes = 0;
  hasLeft = false;
  isAhead = false;
  drop: (() => void) | undefined = undefined;
  /** Creates the error on demand: most waiting requests never run. */
  #refuse: (() => PipelineError) | undefined;
  readonly #serving: Serving;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: Connection;
  readonly #inFlight: InFlightLimit;
  readonly #expectsContinue: boolean;
  #departure: AbortController | undefined = undefined;
  #abortReason: unknown = undefined;
  #scope: RequestScope | undefined = undefined;
  #held: HeldBytes | undefined = undefined;
  /** Set only if there is an observer. */
  #sent: SentBody | undefined = undefined;

  constructor(
    serving: Serving,
    connection: Connection,
    inFlight: InFlightLimit,
    message: IncomingMessage,
    response: ServerResponse,
    refuse: (() => PipelineError) | undefined,
    expectsContinue: boolean,
  ) {
    // Safe: on a server, Node always sets both.
    const { method, url } = message as { readonly method: string; readonly url: string };
    this.method = method;
    ({ path: this.path, query: this.query } = splitTarget(url));
    this.headers = headersOf(message);
    this.ip = clientAddress(
      message.socket.remoteAddress,
      this.headers["x-forwarded-for"],
      serving.settings.trustedProxies,
    );
    this.logFields = serving.isWebFunction ? platformFields(this.headers) : undefined;
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

  /** Created on demand: one read may bring thousands of requests. */
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
    this.#held = this.#serving.bodies.hold();
    return receiveBody(this.#message, limitBytes, this.#connection, this.#held);
  }

  work(): Promise<void> {
    const { gate } = this.#serving;
    return gate === undefined || gate.isOpen
      ? serve(this.#serving, this, this)
      : this.#workOnceOpen(gate);
  }

  async #workOnceOpen(gate: Gate): Promise<void> {
    if (!(await gate.opened())) this.#refuse ??= refusals.starting;
    await serve(this.#serving, this, this);
  }

  ended(): void {
    this.#held?.release();
    this.#serving.connections.abandoned.delete(this);
    if (this.#sent === undefined) return; // never ran, or has no observer
    const { statusCode: status, writableFinished: isWhole } = this.#response;
    // Safe: `send` sets the scope before `#sent`.
    reportSent(this.#scope as RequestScope, this.method, status, this.#sent, isWhole);
  }

  send(answer: HttpResponse, scope: RequestScope): Promise<void> | undefined {
    this.#scope = scope;
    if (scope.runtime.observer !== undefined) this.#sent = { bytes: 0, atOnce: 0 };
    if (this.#response.socket === null) return this.#sendInTurn(answer);
    this.#inFlight.answered(this);
    return this.#sendNow(answer);
  }

  /**
   * Sends a response after earlier ones. Waits here, because Node cannot drop a waiting response
   * before its socket has closed. A waiting stream is not read.
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
      return this.#write(answer)?.catch((error) => this.#cut(error));
    } catch (error) {
      this.#cut(error);
      return undefined;
    }
  }

  /** Synchronous, except for a stream or a long body whose bytes are counted. */
  #write({ status, headers, cookies, body }: HttpResponse): Promise<void> | undefined {
    const response = this.#response;
    const sent = this.#sent;
    // One call, because Node would keep a table of headers that are set one by one.
    response.writeHead(
      status,
      cookies.length > 0 ? { ...headers, "set-cookie": [...cookies] } : headers,
    );
    if (body === undefined || this.method === "HEAD") return void response.end();
    if (typeof body !== "string" && !(body instanceof Uint8Array)) {
      return sendPieces(body, response, pieceBytes, sent ?? { bytes: 0, atOnce: 0 }, this);
    }
    if (sent !== undefined) {
      const length = Buffer.byteLength(body);
      if (length > pieceBytes) {
        this.hold(length);
        const bytes = typeof body === "string" ? Buffer.from(body) : body;
        // If the client leaves during a fixed-length response, nothing is logged.
        return sendPieces(bytes, response, pieceBytes, sent).catch(() => undefined);
      }
      sent.atOnce = length;
    }
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
    if (isAbandoned(this)) this.#serving.connections.abandoned.add(this);
  }

  #end(): void {
    const connection = this.#connection;
    const { runtime, settings } = this.#serving;
    const { draining } = runtime.lifecycle;
    const message = this.#message;
    const { complete, socket } = message;
    // Pipelined requests run concurrently, so only the last response closes the connection.
    const isLatest = connection.requests.last === this;
    const isLast = (draining.aborted || connection.isBroken) && isLatest;
    if (!isLast && !complete && this.#isRestSmall()) {
      readRest(socket, connection, message, settings.requestTimeoutMs, this.#isForwarded);
      return;
    }
    if (isLast || !complete) {
      connection.isClosing = true;
      this.#response.setHeader("connection", "close");
    }
    // The client may still send an unwanted body or unread requests.
    if (!complete || (isLast && this.#inFlight.hadToWait)) {
      lingerAfterAnswer(socket, connection, message, settings.requestTimeoutMs, draining);
    }
  }

  /** Whether the sender reads the response only after it has sent the whole body. */
  get #isForwarded(): boolean {
    return this.#serving.isWebFunction;
  }

  #isRestSmall(): boolean {
    // A client that waits for `100 Continue` gets it only if the body is read.
    const isAwaited = !this.#expectsContinue || this.#held !== undefined;
    return (
      isAwaited &&
      !this.#connection.isBroken &&
      (this.#isForwarded || isSmallBody(this.#message, this.#held?.mostBytes ?? 0))
    );
  }

  #cut(error: unknown): void {
    // Safe: `send` sets the scope before it can cut the response.
    if (!this.isStalled) reportCut((this.#scope as RequestScope).log, error, this.signal);
    this.#response.destroy();
  }
}

export function reportSent(
  scope: RequestScope,
  method: string,
  status: number,
  { bytes, atOnce }: SentBody,
  isWhole: boolean,
): void {
  scope.runtime.observer?.ended(scope, {
    kind: "request",
    method,
    status,
    bytes: isWhole ? bytes + atOnce : bytes,
    isAborted: !isWhole,
  });
}

/** Bytes that a waiting stream is assumed to hold, because the pipeline has read its start. */
const streamBytes = 1_048_576;
/** Size of the pieces of a long, counted body, in bytes. */
const pieceBytes = 65_536;
