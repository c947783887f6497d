import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import type { ResponseStream } from "../../src/hosts/lambda-http/lazy-mode.ts";

// Lambda's Node runtimes as a function that streams sees them: its marker, and a response stream to a Runtime API on loopback.

const marker = Symbol.for("aws.lambda.runtime.handler.streaming");
const preludeType = "application/vnd.awslambda.http-integration-response";

interface Sink extends ResponseStream {
  setContentType(type: string): void;
  onFirstWrite?: (write: (chunk: string | Uint8Array) => void) => void;
}

/** The global `awslambda` of Lambda's Node runtimes. */
export const streamingRuntime = {
  streamifyResponse: (streaming: object) => Object.assign(streaming, { [marker]: "response" }),
  HttpResponseStream: {
    from: (sink: Sink, prelude: object) => {
      sink.setContentType(preludeType);
      sink.onFirstWrite = (write) => {
        write(JSON.stringify(prelude));
        write(new Uint8Array(8));
      };
      return sink;
    },
  },
};

/** A streamed response as Lambda received it. */
export interface StreamedResponse {
  readonly contentType: string | undefined;
  /** The part before the eight zeros; `undefined` without them. */
  readonly prelude: Record<string, unknown> | undefined;
  readonly body: Buffer;
  /** Times of the chunks, in milliseconds since the invocation. */
  readonly chunksMs: readonly number[];
  /** Whether the response ended, rather than broke off. */
  readonly isWhole: boolean;
}

export interface StreamedInvocation {
  readonly response: Promise<StreamedResponse>;
  /** Resolves once the first bytes have come. */
  readonly begun: Promise<void>;
  /** Settles when the function's promise does. */
  readonly returned: Promise<unknown>;
  /** Lets the client leave: the Runtime API closes the connection. */
  leave(): void;
}

/**
 * Invokes a function that streams.
 *
 * @param reads - whether the Runtime API reads the response. Default `true`.
 */
export async function invokeStreaming(
  handler: (...given: never[]) => Promise<unknown>,
  event: unknown,
  { context = {}, reads = true }: { readonly context?: object; readonly reads?: boolean } = {},
): Promise<StreamedInvocation> {
  if (!(marker in handler)) throw new Error("the function does not stream");
  const received = Promise.withResolvers<StreamedResponse>();
  const begun = Promise.withResolvers<void>();
  const connections = new Set<IncomingMessage>();
  const beganMs = performance.now();
  const api = createServer((incoming, outgoing) => {
    connections.add(incoming);
    if (!reads) return;
    const chunks: Buffer[] = [];
    const chunksMs: number[] = [];
    incoming.on("data", (chunk: Buffer) => {
      begun.resolve();
      chunks.push(chunk);
      chunksMs.push(performance.now() - beganMs);
    });
    incoming.on("end", () => outgoing.writeHead(202).end());
    incoming.on("close", () =>
      received.resolve(responseOf(incoming, Buffer.concat(chunks), chunksMs)),
    );
  });
  api.listen(0, "127.0.0.1");
  await once(api, "listening");
  const sink = sinkTo((api.address() as AddressInfo).port); // safe: it listens on a port
  // Safe: a function that streams takes these three.
  const returned = handler(...([event, sink, context] as never[]));
  void returned.then(undefined, () => undefined);
  void Promise.allSettled([returned, reads ? received.promise : returned]).then(() => {
    api.closeAllConnections();
    api.close();
  });
  return {
    response: received.promise,
    begun: begun.promise,
    returned,
    leave: () => {
      for (const { socket } of connections) socket.destroy();
    },
  };
}

function sinkTo(port: number): Sink {
  const sent = request({ host: "127.0.0.1", port, method: "POST" });
  let isFirst = true;
  const write = sent.write.bind(sent) as (chunk: string | Uint8Array) => boolean;
  // Not a Node stream in the runtime either.
  const sink: Sink = {
    setContentType: (type) => void sent.setHeader("content-type", type),
    write: ((chunk: string | Uint8Array) => {
      if (isFirst) sink.onFirstWrite?.(write);
      isFirst = false;
      return write(chunk);
    }) as Sink["write"],
    end: sent.end.bind(sent),
    destroy: sent.destroy.bind(sent),
    on: sent.on.bind(sent) as unknown as Sink["on"],
    off: sent.off.bind(sent) as unknown as Sink["off"],
    get writableFinished() {
      return sent.writableFinished;
    },
  };
  sent.on("error", () => undefined);
  return sink;
}

function responseOf(
  { headers, complete }: IncomingMessage,
  bytes: Buffer,
  chunksMs: readonly number[],
): StreamedResponse {
  const end = bytes.indexOf(new Uint8Array(8));
  const contentType = headers["content-type"];
  if (end === -1)
    return { contentType, prelude: undefined, body: bytes, chunksMs, isWhole: complete };
  return {
    contentType,
    prelude: JSON.parse(bytes.subarray(0, end).toString()) as Record<string, unknown>,
    body: bytes.subarray(end + 8),
    chunksMs,
    isWhole: complete,
  };
}
