import { Agent, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import type { Socket } from "node:net";

/** One request of a load. */
export interface LoadRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  /** Returns the defect of a 2xx answer, if it has one. */
  check?(body: string): string | undefined;
}

/** Results of the requests of a load. */
export interface Tally {
  /** Requests that went out. */
  sent: number;
  /** Those that were answered as they should be. */
  got: number;
  /** Those that were not, by what came instead: `ECONNRESET`, `status 503`. */
  readonly lost: Record<string, number>;
  /** Connections that were refused: no request was sent. */
  refused: number;
  /** Answers with `Retry-After`, after which the client has retried. */
  again: number;
  /** The longest that an answer took, in milliseconds. */
  slowestMs: number;
}

export interface LoadOptions {
  /** Number of clients, each with one keep-alive connection to each instance. */
  readonly clients: number;
  /** The port that the next request goes to. `undefined` ends the client. */
  next(tally: Readonly<Tally>): Promise<number | undefined>;
  /** The request of this number, counted from 0 over all clients. */
  request(number: number): LoadRequest;
}

/** A connection by its two ports, the instance's first. */
export type ConnectionName = `${number} ${number}`;

/** A load that runs. */
export interface Load {
  readonly tally: Readonly<Tally>;
  /** The connections so far; a port may be reused. */
  readonly connected: readonly ConnectionName[];
  /** The connections of lost requests; `undefined` if the request had no connection yet. */
  readonly lostOn: readonly (ConnectionName | undefined)[];
  /** Starts no further request; resolves when each has ended. */
  stop(): Promise<void>;
  /** Resolves when each client has ended. */
  readonly ended: Promise<void>;
}

/**
 * Sends requests, one at a time for each client, like ordinary keep-alive clients. They replace a connection after
 * `Connection: close`, or if it is closed while idle. They only retry after a 409 with `Retry-After`.
 */
export function startLoad({ clients, next, request: requestOf }: LoadOptions): Load {
  const tally: Tally = { sent: 0, got: 0, lost: {}, refused: 0, again: 0, slowestMs: 0 };
  const connected: ConnectionName[] = [];
  const lostOn: (ConnectionName | undefined)[] = [];
  let isStopped = false;
  let number = 0;
  const count = (outcome: Outcome, connection: ConnectionName | undefined) => {
    if (outcome === "ECONNREFUSED") {
      tally.refused += 1;
      return;
    }
    tally.sent += 1;
    if (outcome === "got") tally.got += 1;
    else if (typeof outcome === "object") tally.again += 1;
    else {
      tally.lost[outcome] = (tally.lost[outcome] ?? 0) + 1;
      lostOn.push(connection);
    }
  };
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const names = new WeakMap<Socket, ConnectionName>();
    let wanted: LoadRequest | undefined;
    for (;;) {
      const port = await next(tally);
      if (port === undefined || (isStopped && wanted === undefined)) break;
      wanted ??= requestOf(number++);
      const beganMs = performance.now();
      let socket: Socket | undefined;
      const outcome = await send(agent, port, wanted, (given) => {
        socket = given;
        if (!given.connecting) return;
        given.once("connect", () => {
          const name: ConnectionName = `${port} ${Number(given.localPort)}`;
          names.set(given, name);
          connected.push(name);
        });
      });
      tally.slowestMs = Math.max(tally.slowestMs, performance.now() - beganMs);
      count(outcome, socket && names.get(socket));
      if (typeof outcome === "object")
        await new Promise((resolve) => setTimeout(resolve, outcome.againMs));
      else wanted = undefined;
    }
    agent.destroy();
  };
  const ended = Promise.all(Array.from({ length: clients }, client)).then(() => {});
  return {
    tally,
    connected,
    lostOn,
    ended,
    stop: () => {
      isStopped = true;
      return ended;
    },
  };
}

/** Number of lost requests. */
export const lostOf = ({ lost }: Tally): number =>
  Object.values(lost).reduce((sum, count) => sum + count, 0);

/** Longer than anything here takes: an answer that never comes is lost too. */
const answerMs = 60_000;

/** The expected answer, a request to retry, or any other answer. */
type Outcome = "got" | { readonly againMs: number } | (string & {});

function send(
  agent: Agent,
  port: number,
  { method, path, headers = {}, body, check }: LoadRequest,
  onSocket: (socket: Socket) => void,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message);
    const signal = AbortSignal.timeout(answerMs);
    const outgoing = request(
      { host: "127.0.0.1", port, method, path, headers, agent, signal },
      (response) => {
        read(response).then((text) => resolve(outcomeOf(response, () => check?.(text))), failed);
      },
    );
    outgoing.on("socket", onSocket).on("error", failed);
    outgoing.end(body);
  });
}

function outcomeOf(
  { statusCode = 0, headers }: IncomingMessage,
  check: () => string | undefined,
): Outcome {
  if (statusCode >= 200 && statusCode < 300) return check() ?? "got";
  const againS = Number(headers["retry-after"]);
  return statusCode === 409 && againS >= 0 ? { againMs: againS * 1_000 } : `status ${statusCode}`;
}

async function read(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
