// A function that streams, in Lambda's own runtime for Node. The Runtime API that it talks to is played here, since Lambda's emulator
// is not documented to stream.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { lambdaEvent } from "keelson/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

interface Streamed {
  readonly headers: IncomingMessage["headers"];
  readonly prelude: Record<string, unknown>;
  readonly body: Buffer;
  readonly text: string;
  /** Times of the chunks since the first, in milliseconds. */
  readonly chunksMs: readonly number[];
  readonly isWhole: boolean;
  readonly trailers: NodeJS.Dict<string>;
}

const root = join(import.meta.dirname, "../..");
let api: Server;
let runtime: ChildProcess;
let text = "";
let isOver = false;
/** Invocations that wait for the runtime, and the runtime when it waits for one. */
const waiting: { event: unknown; answered: (streamed: Streamed) => void }[] = [];
const answers = new Map<string, (streamed: Streamed) => void>();
let next: ServerResponse | undefined;

beforeAll(async () => {
  // Safe: it is declared in scripts/package-emulator.mjs, which has no types.
  const { installRuntime } = (await import(
    pathToFileURL(join(root, "scripts/package-emulator.mjs")).href
  )) as { installRuntime(say: (line: string) => void): { readonly runtime: string } };
  const installed = installRuntime(console.log);
  api = createServer(serve).listen(0, "127.0.0.1");
  await once(api, "listening");
  const { port } = api.address() as AddressInfo; // safe: it listens on a port
  start(installed.runtime, port);
}, 300_000);

/** Like Lambda, starts the runtime again when it ends. */
function start(program: string, port: number): void {
  runtime = spawn(process.execPath, [program, "streamed-function.http"], {
    cwd: join(root, "test/fixtures"),
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env["PATH"],
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
      _HANDLER: "streamed-function.http",
      AWS_LAMBDA_FUNCTION_NAME: "streamed",
      AWS_LAMBDA_FUNCTION_VERSION: "1",
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "512",
      AWS_LAMBDA_LOG_GROUP_NAME: "/aws/lambda/streamed",
      AWS_LAMBDA_LOG_STREAM_NAME: "test",
      AWS_REGION: "us-east-1",
      LAMBDA_TASK_ROOT: join(root, "test/fixtures"),
    },
  });
  for (const stream of [runtime.stdout, runtime.stderr])
    stream?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  runtime.once("exit", () => {
    if (!isOver) start(program, port);
  });
}

afterAll(async () => {
  isOver = true;
  runtime?.kill("SIGKILL");
  api?.closeAllConnections();
  api?.close();
});

/** Lambda's Runtime API, as far as a function needs it. */
function serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const path = incoming.url ?? "";
  if (path.endsWith("/invocation/next")) {
    next = outgoing;
    hand();
    return;
  }
  const [, id = ""] = /\/invocation\/([^/]+)\//.exec(path) ?? [];
  const chunks: Buffer[] = [];
  const times: number[] = [];
  incoming.on("data", (chunk: Buffer) => {
    times.push(performance.now());
    chunks.push(chunk);
  });
  incoming.on("end", () => outgoing.writeHead(202).end());
  incoming.on("error", () => undefined);
  incoming.on("close", () => {
    const bytes = Buffer.concat(chunks);
    const end = bytes.indexOf(new Uint8Array(8));
    answers.get(id)?.({
      headers: incoming.headers,
      prelude: end === -1 ? {} : JSON.parse(bytes.subarray(0, end).toString()),
      body: bytes.subarray(end === -1 ? 0 : end + 8),
      text: bytes.subarray(end === -1 ? 0 : end + 8).toString(),
      chunksMs: times.map((at) => at - (times[0] ?? 0)),
      isWhole: incoming.complete,
      trailers: incoming.trailers,
    });
    answers.delete(id);
  });
}

function hand(): void {
  const [first] = waiting;
  if (next === undefined || first === undefined) return;
  waiting.shift();
  const id = crypto.randomUUID();
  answers.set(id, first.answered);
  next.writeHead(200, {
    "content-type": "application/json",
    "lambda-runtime-aws-request-id": id,
    "lambda-runtime-deadline-ms": String(Date.now() + 30_000),
    "lambda-runtime-invoked-function-arn":
      "arn:aws:lambda:us-east-1:123456789012:function:streamed",
  });
  next.end(JSON.stringify(first.event));
  next = undefined;
}

const invoke = (front: "functionUrl" | "restApi" | "httpApi", path: string, method = "GET") =>
  new Promise<Streamed>((answered) => {
    waiting.push({ event: lambdaEvent(front, { path, method }), answered });
    hand();
  });

describe("in Lambda's own runtime,", () => {
  test("chunks arrive one by one, with status, headers and all cookies", async () => {
    const {
      headers,
      prelude,
      text: body,
      chunksMs,
      isWhole,
    } = await invoke("functionUrl", "/chunks");
    expect(headers).toMatchObject({
      "content-type": "application/vnd.awslambda.http-integration-response",
      "lambda-runtime-function-response-mode": "streaming",
    });
    expect(prelude).toMatchObject({
      statusCode: 200,
      headers: { "content-type": "text/plain", "x-request-id": expect.any(String) },
      cookies: [expect.stringContaining("a=1"), expect.stringContaining("b=2")],
    });
    expect([body, isWhole]).toEqual(["one two three", true]);
    expect(chunksMs.at(-1)).toBeGreaterThan(400);
  });

  test("a REST API has its cookies in multiValueHeaders", async () => {
    const { prelude } = await invoke("restApi", "/chunks");
    expect(prelude).toMatchObject({
      multiValueHeaders: { "set-cookie": [/a=1/, /b=2/].map((re) => expect.stringMatching(re)) },
    });
  });

  test.each([
    ["/none", "GET", 204],
    ["/chunks", "HEAD", 200],
  ])("a response without a body has its prelude: %s %s", async (path, method, statusCode) => {
    const { prelude, body, isWhole } = await invoke("functionUrl", path, method);
    expect(prelude).toMatchObject({ statusCode });
    expect([body.byteLength, isWhole]).toEqual([0, true]);
  });

  test("10 MB pass, without base64", async () => {
    const { body, isWhole } = await invoke("functionUrl", "/huge");
    expect([body.byteLength, isWhole]).toEqual([10 * 1_048_576, true]);
  });

  // The runtime ends its process over the broken connection, and Lambda starts it again.
  test("a response that breaks off is not whole, and the next invocation works", async () => {
    const { prelude, text: body, isWhole } = await invoke("functionUrl", "/broken");
    expect([prelude["statusCode"], body, isWhole]).toEqual([200, "first", false]);
    await expect.poll(() => text).toContain("response.cut_off");
    expect((await invoke("functionUrl", "/none")).prelude).toMatchObject({ statusCode: 204 });
  });

  test("an HTTP API gets a whole result", async () => {
    const { prelude, text: body, isWhole } = await invoke("httpApi", "/chunks");
    expect([prelude, isWhole]).toEqual([{}, true]);
    const { statusCode, body: bytes, isBase64Encoded } = JSON.parse(body);
    expect([statusCode, isBase64Encoded]).toEqual([200, true]);
    expect(Buffer.from(bytes, "base64").toString()).toBe("one two three");
  });

  test("eventsource-parser reads the events", async () => {
    const { text: body } = await invoke("functionUrl", "/events");
    const events: EventSourceMessage[] = [];
    createParser({ onEvent: (event) => void events.push(event) }).feed(body);
    expect(events.map(({ id, data }) => [id, JSON.parse(data)])).toEqual(
      [1, 2, 3].map((n) => [`${n}`, { n }]),
    );
  });
});
