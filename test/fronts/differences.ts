import { beforeEach } from "vitest";

/** A difference between one of the fronts and the container, for which the tests are written. */
const differences: readonly {
  readonly front: string;
  readonly tests: readonly string[];
  readonly because: string;
}[] = [
  {
    front: "http",
    tests: [
      "4.5.3: Handlers may call `ctx.signal?.throwIfAborted()`, for example once per loop iteration.",
      "4.5.4: The pipeline layer (database wrapper, …) honours the signal where sensible.",
      "4.5.4: … event streaming, …",
      "a client that leaves closes the handler's iterable",
      "a client that disconnects releases the source: a Readable that gives no more",
      "a client that disconnects before the first chunk releases the source too",
      "a stream is cancelled when its reader leaves or its response is refused; a later failure cuts the response off",
    ],
    because: "a function does not learn that the client of an HTTP API has left",
  },
  {
    front: "http",
    tests: [
      "a container sends each chunk as it arrives",
      "a stream sends comments while nothing happens",
      "a later item with wrong data breaks the stream off",
      "a later item with wrong id breaks the stream off",
      "a later item with wrong none breaks the stream off",
      "a source that fails halfway is cut off in a container, and a 500 in Lambda",
    ],
    because: "an HTTP API does not stream: its client gets a response whole, or an error",
  },
  {
    front: "http",
    tests: [
      "4.4: The response carries header `X-Request-ID` with that value.",
      "2.5: Automatic child-logger context per request …: `requestId` (string), `tenantId`, `userId`, `handler` (shape `<feature>.<entity>.<operation>`).",
      "1: The framework creates a child logger per request … with automatic context.",
    ],
    because: "an HTTP API decodes the path, so a malformed one is not found instead of refused",
  },
  {
    front: "web",
    tests: [
      "During the linger an idle or new session serves one more request, and a busy one is told and finishes",
      "During the drain an idle session closes with the listener, and a stream in flight finishes",
      "A stuck stream is cut off and named when the drain times out",
    ],
    because: "Lambda speaks HTTP/1.1 without TLS with a Web Function",
  },
  {
    front: "web",
    tests: [
      "A second signal in the stopping of the workers skips the remaining waits: the exit code is 1",
      "A worker that hangs is abandoned after its time limit, and the exit code is 1",
    ],
    because: "a Web Function runs no workers",
  },
  {
    front: "web",
    tests: [
      "A second signal in the closing of the resources skips the remaining waits: the exit code is 1",
    ],
    because: "a Web Function exits with 0 in time, although a resource hangs",
  },
  {
    front: "web",
    tests: [
      "Readiness is answered while draining, even if a check hangs, and does not delay the exit",
    ],
    because: "a Web Function that has listened serves only once its ready checks have passed",
  },
];

const front = process.env["KEELSON_TEST_FRONT"];
beforeEach(({ task, skip }) => {
  const found = differences.find((one) => one.front === front && one.tests.includes(task.name));
  if (found !== undefined) skip(found.because);
});
