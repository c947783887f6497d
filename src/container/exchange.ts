import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { PipelineError } from "../errors/errors.ts";
import type { HttpRequest, HttpResponse } from "../http/message.ts";
import type { Logger } from "../log/logger.ts";
import type { RunObserver } from "../observe/run-observer.ts";
import { type Sender, serve } from "../run/pipeline.ts";
import type { Runtime } from "../run/runtime.ts";
import type { RequestScope } from "../run/scope.ts";
import { type SentBody, sendPieces, sentBytes, streamOf } from "./body-pieces.ts";
import { type ByteBudget, type HeldBytes, holdBytes } from "./byte-budget.ts";
import { bytesRead, type Connection, type OpenRequest } from "./connections.ts";
import type { HttpSettings } from "./http-options.ts";
import { headersOf, noBytes, splitTarget } from "./http-request.ts";
import type { InFlightLimit, LimitedRequest } from "./in-flight-limit.ts";
import { lingerAfterAnswer } from "./lingering-close.ts";
import { receiveBody } from "./receive-body.ts";
import { reportCut } from "./report-cut.ts";

/** What all requests of a server are served with. */
export interface Serving {
  readonly runtime: Runtime;
  readonly settings: HttpSettings;
  readonly bodies: ByteBudget;
}

/** Where an exchange stands. */
interface Place {
  readonly connection: Connection;
  readonly inFlight: InFlightLimit;
}

/** How an exchange begins. */
interface Beginning {
  readonly refusal: PipelineError | undefined;
  /** Its client sends the body when it is told that it is going to be read. */
  readonly expectsContinue: boolean;
}

/**
 * A request of HTTP/1.1 and its answer. One object with methods: a function that is made for each request keeps whatever
 * it uses for as long as itself, and a dozen of them were a tenth of a request's time (`http-no-log` in `bench/results.json`).
 */
export class Exchange implements HttpRequest, OpenRequest, Sender, LimitedRequest {
  requestId = "";
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly ip: string | undefined;
  readonly signal: AbortSignal;
  readonly gatewayClaims = undefined; // no gateway in front of a container is believed
  readonly refusal: PipelineError | undefined;
  readonly nowMs: number | undefined;
  isStalled = false;
  left = 2;
  readonly #serving: Serving;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #connection: Connection;
  readonly #inFlight: InFlightLimit;
  readonly #expectsContinue: boolean;
  readonly #departure = new AbortController();
  #scope: RequestScope | undefined = undefined;
  #held: HeldBytes | undefined = undefined;
  /** What was sent of the answer's body, where somebody wants to know. */
  #sent: SentBody | undefined = undefined;

  constructor(
    serving: Serving,
    { connection, inFlight }: Place,
    message: IncomingMessage,
    response: ServerResponse,
    { refusal, expectsContinue }: Beginning,
  ) {
    // Both are always there on a server's side; the types are shared with the client's.
    const { method, url } = message as IncomingMessage & { readonly method: string; readonly url: string };
    const { path, query } = splitTarget(url);
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = headersOf(message);
    this.ip = message.socket.remoteAddress;
    this.signal = this.#departure.signal;
    this.refusal = refusal;
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

  get log(): Logger | undefined {
    return this.#scope?.log;
  }

  abort(reason: unknown): void {
    this.#departure.abort(reason);
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
    observer.ended(this.#scope as RequestScope, { kind: "request", method: this.method, status, bytes, isAborted: !isWhole });
  }

  send(answer: HttpResponse, scope: RequestScope): Promise<void> | undefined {
    this.#scope = scope;
    if (scope.runtime.observer !== undefined) this.#sent = { bytes: 0, atOnce: 0 };
    this.#end();
    try {
      const streamed = write(this.#response, answer, this.method === "HEAD", this.#sent);
      return streamed?.catch((error) => this.#cut(error));
    } catch (error) {
      this.#cut(error);
      return undefined;
    }
  }

  /** Its answer is out, or its connection has closed. */
  leave(): void {
    const connection = this.#connection;
    if (!connection.requests.delete(this)) return;
    const { socket } = this.#message;
    connection.idleAtBytes = bytesRead(socket);
    if (!this.#response.writableFinished) this.abort(new DOMException("The client has gone", "AbortError"));
    if (connection.isBroken && connection.requests.size === 0) socket.destroySoon();
    this.#inFlight.leave(this);
  }

  /** Closes the connection with this answer, where no other follows. */
  #end(): void {
    const connection = this.#connection;
    const { draining } = this.#serving.runtime.lifecycle;
    const { complete, socket } = this.#message;
    const isLast = (draining.aborted || connection.isBroken) && isLatest(connection, this);
    if (isLast || !complete) {
      connection.isClosing = true;
      this.#response.setHeader("connection", "close");
    }
    // It may still send a body that nobody wants, or requests that were not read.
    if (!complete || (isLast && this.#inFlight.hadToWait)) {
      lingerAfterAnswer(socket, connection, this.#message, this.#serving.settings.requestTimeoutMs, draining);
    }
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

/** How much of a long body is given to the response at a time, where it is counted. */
const pieceBytes = 65_536;

/** What is awaited of it is a stream, or a long body that is counted; anything else is out at once. */
function write(
  response: ServerResponse,
  answer: HttpResponse,
  head: boolean,
  sent: SentBody | undefined,
): Promise<void> | undefined {
  const { status, headers, cookies, body } = answer;
  // At once, not header by header: with a call for each, Node keeps a table of them.
  response.writeHead(status, cookies.length > 0 ? { ...headers, "set-cookie": [...cookies] } : headers);
  if (body === undefined || head) {
    response.end();
    return undefined;
  }
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    return sent === undefined ? pipeline(streamOf(body), response) : sendPieces(body, response, pieceBytes, sent);
  }
  if (sent === undefined) {
    response.end(body);
    return undefined;
  }
  const length = Buffer.byteLength(body);
  if (length <= pieceBytes) {
    sent.atOnce = length;
    response.end(body);
    return undefined;
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  // A client that leaves while a whole answer is written is no line of its own.
  return sendPieces(bytes, response, pieceBytes, sent).catch(() => undefined);
}
