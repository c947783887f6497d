import type { ServerResponse } from "node:http";
import type { ResponseStream } from "../../src/hosts/lambda-http/lazy-mode.ts";

interface Prelude {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[]>>;
  readonly cookies?: readonly string[];
}

interface Sink extends ResponseStream {
  prelude?: Prelude;
}

/** The global `awslambda` of a runtime whose streams write to a client directly. */
export const streamingRuntime = {
  streamifyResponse: <Streaming>(streaming: Streaming): Streaming => streaming,
  HttpResponseStream: {
    from: (sink: ResponseStream, prelude: object): ResponseStream =>
      Object.assign(sink, { prelude }),
  },
};

/** Writes a function's stream to a client: first its prelude, then its bytes. */
export function responseSink(outgoing: ServerResponse): ResponseStream {
  let isFirst = true;
  const sink: Sink = {
    write: ((chunk: Uint8Array) => {
      if (isFirst && sink.prelude !== undefined) writeHead(outgoing, sink.prelude);
      isFirst = false;
      return chunk.byteLength === 0 ? true : outgoing.write(chunk);
    }) as Sink["write"],
    end: outgoing.end.bind(outgoing) as Sink["end"],
    destroy: outgoing.destroy.bind(outgoing) as unknown as Sink["destroy"],
    on: outgoing.on.bind(outgoing) as unknown as Sink["on"],
    off: outgoing.off.bind(outgoing) as unknown as Sink["off"],
    get writableFinished() {
      return outgoing.writableFinished;
    },
  };
  return sink;
}

function writeHead(
  outgoing: ServerResponse,
  { statusCode, headers = {}, multiValueHeaders = {}, cookies = [] }: Prelude,
): void {
  const lists = Object.entries(multiValueHeaders).map(([name, values]) => [name, [...values]]);
  outgoing.writeHead(statusCode, {
    ...headers,
    ...Object.fromEntries(lists),
    ...(cookies.length > 0 ? { "set-cookie": [...cookies] } : {}),
  });
  outgoing.flushHeaders();
}
