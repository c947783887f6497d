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
import type { Serving } from "./serving.ts";

/** Where an exchange stands. */
interface Place {
  readonly connection: Connection;
  readonly inFlight: InFlightLimit;
}

/** How an exchange begins. */
interface Beginning {
  /** Makes the reason why it is not taken; `undefined` where it is. An error takes time, and most that wait are never run. */
  readonly refuse: (() => PipelineError) | undefined;
  /** Its client sends the body when it is told that it is going to be read. */
  readonly expectsContinue: boolean;
}

/**
 * A request of HTTP/1.1 and its answer. One object with methods: a function that is made for each request keeps whatever
 * it uses for as long as itself, and a dozen of them were a tenth of a request's time (`http-no-log` in `bench/results.json`).
 */
export class Exchange implements HttpRequest, OpenRequest, Sender, LimitedRequest, WaitingBytes {
  requestId = "";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly ip: string | undefined;
  readonly gatewayClaims = undefined; // no gateway in front of a container is believed
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
  /** What was sent of the answer's body, where somebody wants to know. */
  #sent: SentBody | undefined = undefined;

  constructor(
    serving: Serving,
    { connection, inFlight }: Place,
    message: IncomingMessage,
    response: ServerResponse,
    { refuse, expectsContinue }: Beginning,
  ) {
    // Both are always there on a server's side; the types are shared with the client's.
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

  /** Made when somebody asks: of the thousands of requests that one read may bring, most only wait. */
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
    return serve(this.#serving.runtime, this, this);
  }

  ended(): void {
    this.#held?.release();
    const { observer } = this.#serving.runtime;
    if (observer !== undefined) this.#tell(observer);
  }

  /** One that never ran has no answer, and nothing to tell. */
  #tell(observer: RunObserver): void {
    if (this.#sent === undefined) return;
    const { statusCode: status, writableFinished: isWhole } = this.#response;
    const bytes = sentBytes(this.#sent, isWhole);
    // Safe: it has had a scope for as long.
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
   * Waits for the answers before this one, and not in Node: what waits there cannot be dropped before its socket has closed,
   * and of a stream nothing is read yet.
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
      // Its client has gone. A stream that breaks off is let go of, which is all there is to do.
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

  /** What is awaited of it is a stream, or a long body that is counted; anything else is out at once. */
  #write({ status, headers, cookies, body }: HttpResponse): Promise<void> | undefined {
    const response = this.#response;
    const sent = this.#sent;
    // At once, not header by header: with a call for each, Node keeps a table of them.
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
      // A client that leaves while a whole answer is written is no line of its own.
      return sendPieces(bytes, response, pieceBytes, sent).catch(() => undefined);
    }
    if (sent !== undefined) sent.atOnce = length;
    response.end(body);
    const { writableLength } = response; // what the kernel has not taken
    if (writableLength > 0) this.hold(writableLength);
    return undefined;
  }

  hold(bytes: number): void {
    this.#inFlight.hold(this, bytes);
  }

  release(bytes: number): void {
    this.#inFlight.release(this, bytes);
  }

  /** Its answer is out, or its connection has closed. */
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

  /** Closes the connection with this answer, where no other follows. */
  #end(): void {
    const connection = this.#connection;
    const { runtime, settings } = this.#serving;
    const { draining } = runtime.lifecycle;
    const message = this.#message;
    const { complete, socket } = message;
    const isLast = (draining.aborted || connection.isBroken) && isLatest(connection, this);
    if (!isLast && !complete && this.#isRestSmall()) {
      readRest(socket, connection, message, settings.requestTimeoutMs);
      return;
    }
    if (isLast || !complete) {
      connection.isClosing = true;
      this.#response.setHeader("connection", "close");
    }
    // It may still send a body that nobody wants, or requests that were not read.
    if (!complete || (isLast && this.#inFlight.hadToWait)) {
      lingerAfterAnswer(socket, connection, message, settings.requestTimeoutMs, draining);
    }
  }

  /** Whether what is to come of a body nobody wants is read to its end: it comes, and is small. */
  #isRestSmall(): boolean {
    const isAwaited = !this.#expectsContinue || this.#held !== undefined; // else its client was not told to send it
    return (
      isAwaited &&
      !this.#connection.isBroken &&
      isSmallBody(this.#message, this.#held?.mostBytes ?? 0)
    );
  }

  #cut(error: unknown): void {
    // Safe: it is cut while it is sent, and then it has a scope.
    const { log } = this.#scope as RequestScope;
    if (!this.isStalled) reportCut(log, error, this.signal);
    this.#response.destroy();
  }
}

/** Pipelined requests are executed side by side: the connection closes with the answer to the last one, or others would get none. */
function isLatest({ requests }: Connection, request: OpenRequest): boolean {
  return [...requests].at(-1) === request;
}

/** What a stream is taken to hold that waits for its turn: the pipeline has read its beginning. */
const streamBytes = 1_048_576;

/** How much of a long body is given to the response at a time, where it is counted. */
const pieceBytes = 65_536;
