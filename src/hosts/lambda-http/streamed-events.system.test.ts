import { once } from "node:events";
import { Writable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  invokeStreaming,
  type StreamedResponse,
  streamingRuntime,
} from "../../../test/support/lambda-stream.ts";
import { waitFor } from "../../../test/support/wait-for.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import { lambdaEvent } from "../../tools/testing/index.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "./http-handler.ts";
import type { ResponseStream } from "./lazy-mode.ts";

let logs: Record<string, unknown>[] = [];
beforeEach(() => {
  logs = [];
  vi.stubGlobal("awslambda", streamingRuntime);
  vi.spyOn(process.stdout, "write").mockImplementation(
    (line) => logs.push(JSON.parse(String(line)) as Record<string, unknown>) > 0,
  );
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});
const said = (msg: string) => logs.filter((line) => line["msg"] === msg);

const text = { headers: { "content-type": "text/plain" } };
const mebibyte = 1_048_576;
let signals: (AbortSignal | undefined)[] = [];
let cancelled: unknown[] = [];
let release = Promise.withResolvers<void>();
beforeEach(() => {
  signals = [];
  cancelled = [];
  release = Promise.withResolvers<void>();
});

async function* waitingChunks() {
  yield "first ";
  await release.promise;
  yield "second";
}
const brokenChunks = (first: string | undefined) =>
  new ReadableStream({
    start: (controller) => {
      if (first !== undefined) controller.enqueue(first);
    },
    pull: async (controller) => {
      if (first !== undefined) await release.promise;
      controller.error(new Error("the source is broken"));
    },
  });
/** Never ends, and says when it is cancelled. */
const endless = () =>
  new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(mebibyte)),
    cancel: (reason) => void cancelled.push(reason),
  });
const silent = () =>
  new ReadableStream<string>({
    start: (controller) => controller.enqueue("first"),
    cancel: (reason) => void cancelled.push(reason),
  });

const streamed = defineFeature("streamed", (r) => {
  const everyone = { access: access.everyone };
  r.query("thing.show", {
    route: "GET /things/:id",
    ...everyone,
    handler: (_ctx, input) => reply(input, { cookies: { a: { value: "1" }, b: { value: "2" } } }),
  });
  r.query("thing.none", { route: "GET /none", ...everyone, handler: () => undefined });
  r.query("thing.unchanged", {
    route: "GET /unchanged",
    ...everyone,
    handler: () => reply(undefined, { status: 304, headers: { etag: '"1"' } }),
  });
  r.query("thing.bytes", {
    route: "GET /bytes",
    ...everyone,
    handler: () =>
      reply(new Uint8Array([0, 255, 0, 128]), { headers: { "content-type": "image/x" } }),
  });
  r.query("thing.huge", {
    route: "GET /huge",
    ...everyone,
    handler: () => reply("x".repeat(10 * mebibyte), text),
  });
  r.query("thing.missing", {
    route: "GET /missing",
    ...everyone,
    handler: () => {
      throw new NotFoundError("thing", "7");
    },
  });
  r.query("thing.wait", {
    route: "GET /wait",
    ...everyone,
    handler: ({ signal }) => {
      signals.push(signal);
      return reply(waitingChunks(), text);
    },
  });
  r.query("thing.never", {
    route: "GET /never",
    ...everyone,
    handler: ({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    },
  });
  r.query("thing.endless", {
    route: "GET /endless",
    ...everyone,
    handler: ({ signal }) => {
      signals.push(signal);
      return reply(endless(), text);
    },
  });
  r.query("thing.silent", {
    route: "GET /silent",
    ...everyone,
    handler: ({ signal }) => {
      signals.push(signal);
      return reply(silent(), text);
    },
  });
  r.query("thing.broken", {
    route: "GET /broken/:when",
    ...everyone,
    handler: (_ctx, input) =>
      reply(brokenChunks((input as { when: string }).when === "late" ? "first" : undefined), text),
  });
  r.write("thing.add", {
    route: "POST /things",
    ...everyone,
    once: false,
    handler: () => reply({ text: "x".repeat(8 * mebibyte) }, { status: 201 }),
  });
});
const server = () => buildServer({ features: [streamed], environment: "test" });

type Streaming = LambdaHttpHandler<LambdaHttpEvent>;
const streaming = () => lambdaHttp<LambdaHttpEvent>(server(), { stream: true });
type Front = "restApi" | "functionUrl" | "httpApi" | "httpApiV1" | "loadBalancer";

async function respond(
  path: string,
  {
    front = "functionUrl",
    method,
    handler = streaming(),
    context,
  }: { front?: Front; method?: string; handler?: Streaming; context?: object } = {},
): Promise<StreamedResponse> {
  const event = lambdaEvent(front, { path, ...(method === undefined ? {} : { method }) });
  const { response, returned } = await invokeStreaming(handler, event, {
    ...(context === undefined ? {} : { context }),
  });
  await returned;
  return response;
}

test.each(["functionUrl", "restApi"] as const)(
  "status, headers and cookies are those of a whole response: %s",
  async (front) => {
    for (const [path, method] of [
      ["/things/7", "GET"],
      ["/things/7", "HEAD"],
      ["/none", "GET"],
      ["/unchanged", "GET"],
      ["/missing", "GET"],
      ["/nowhere", "GET"],
      ["/bytes", "GET"],
      ["/things", "OPTIONS"],
    ] as const) {
      const headers = { "x-request-id": "same" };
      const event = lambdaEvent(front, { path, method, headers });
      const { response, returned } = await invokeStreaming(streaming(), event);
      expect(await returned).toBeUndefined();
      const { contentType, prelude, body, isWhole } = await response;

      vi.unstubAllGlobals();
      const whole = await lambdaHttp<LambdaHttpEvent>(server(), { stream: true })(
        event,
        {} as never,
      );
      vi.stubGlobal("awslambda", streamingRuntime);
      const { body: wholeBody = "", isBase64Encoded = false, ...rest } = whole;
      expect(contentType).toBe("application/vnd.awslambda.http-integration-response");
      expect(prelude).toEqual(rest);
      expect(body).toEqual(Buffer.from(wholeBody, isBase64Encoded ? "base64" : "utf8"));
      expect(isWhole).toBe(true);
    }
  },
);

test("chunks go out as they are made", async () => {
  const { response, returned } = await invokeStreaming(
    streaming(),
    lambdaEvent("functionUrl", { path: "/wait" }),
  );
  let isOver = false;
  void returned.then(() => {
    isOver = true;
  });
  await waitFor(() => expect(signals).toHaveLength(1));
  expect(isOver).toBe(false);
  release.resolve();
  const { body, chunksMs } = await response;
  await returned;
  expect(body.toString()).toBe("first second");
  expect(chunksMs.length).toBeGreaterThan(1);
  expect(signals[0]?.aborted).toBe(false);
  expect(said("request.completed")).toMatchObject([{ status: 200, bytes: 12 }]);
  expect(said("request.completed")[0]).not.toHaveProperty("aborted");
});

test("neither a query nor a write has the limit of a whole response", async () => {
  expect((await respond("/huge")).body.byteLength).toBe(10 * mebibyte);
  const { prelude, body } = await respond("/things", { method: "POST" });
  expect(prelude).toMatchObject({ statusCode: 201 });
  expect(body.byteLength).toBeGreaterThan(8 * mebibyte);
});

test("an error before the first byte is the uniform response", async () => {
  const { prelude, body, isWhole } = await respond("/broken/early");
  expect(prelude).toMatchObject({ statusCode: 500 });
  expect(JSON.parse(body.toString())).toMatchObject({ error: "internal_error" });
  expect(isWhole).toBe(true);
});

test("an error after it breaks the response off, and the line says so", async () => {
  const event = lambdaEvent("functionUrl", { path: "/broken/late" });
  const { begun, response, returned } = await invokeStreaming(streaming(), event);
  await begun;
  release.resolve();
  await returned;
  const { prelude, body, isWhole } = await response;
  expect(prelude).toMatchObject({ statusCode: 200 });
  expect([body.toString(), isWhole]).toEqual(["first", false]);
  expect(said("response.cut_off")).toMatchObject([
    { level: "error", message: "the source is broken" },
  ]);
  expect(said("request.completed")).toMatchObject([{ status: 200, aborted: true }]);
});

test.each(["/endless", "/silent"])(
  "a client that leaves %s aborts the signal and cancels the stream",
  async (path) => {
    const invocation = await invokeStreaming(streaming(), lambdaEvent("functionUrl", { path }), {
      reads: false,
    });
    await waitFor(() => {
      invocation.leave();
      expect(cancelled).toHaveLength(1);
    });
    await invocation.returned;
    expect(signals[0]?.aborted).toBe(true);
    expect(said("request.aborted")).toMatchObject([{ level: "warn" }]);
    expect(said("request.completed")).toMatchObject([{ status: 200, aborted: true }]);
    expect(said("response.cut_off")).toEqual([]);
  },
);

/** Response stream in memory. */
function memoryStream() {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  Object.assign(stream, { setContentType: () => undefined });
  // Safe: a writable stream of Node has every other member that the function uses.
  return { stream: stream as unknown as ResponseStream & Writable, chunks };
}

function called(handler: object, event: unknown, stream: ResponseStream) {
  // Safe: a function that streams takes these three.
  return (handler as unknown as (...given: unknown[]) => Promise<unknown>)(event, stream, {});
}

test("a client that leaves before the response begins is logged once", async () => {
  const { stream } = memoryStream();
  const feature = defineFeature("stopping", (r) => {
    r.query("thing.stop", {
      route: "GET /stop",
      access: access.everyone,
      handler: async ({ signal }) => {
        stream.destroy();
        await once(signal as AbortSignal, "abort");
        signal?.throwIfAborted();
      },
    });
  });
  const handler = lambdaHttp(buildServer({ features: [feature] }), { stream: true });
  const event = lambdaEvent("functionUrl", { path: "/stop" });
  await called(handler, event, stream);
  expect(said("request.aborted")).toMatchObject([{ level: "warn" }]);
  expect(said("response.cut_off")).toEqual([]);
  expect(said("request.completed")).toMatchObject([{ aborted: true }]);
});

test("the response goes to the stream that Lambda's global returns", async () => {
  const [given, returned] = [memoryStream(), memoryStream()];
  const preludes: object[] = [];
  vi.stubGlobal("awslambda", {
    ...streamingRuntime,
    HttpResponseStream: {
      from: (_stream: object, prelude: object) => {
        preludes.push(prelude);
        return returned.stream;
      },
    },
  });
  const event = lambdaEvent("functionUrl", { path: "/bytes" });
  await called(streaming(), event, given.stream);
  expect(preludes).toMatchObject([{ statusCode: 200 }]);
  expect(Buffer.concat(returned.chunks)).toEqual(Buffer.from([0, 255, 0, 128]));
  expect(given.chunks).toEqual([]);
});

test("a client that reads nothing holds a bounded part of a stream", async () => {
  let made = 0;
  const feature = defineFeature("slow", (r) => {
    r.query("thing.large", {
      route: "GET /large",
      access: access.everyone,
      handler: () =>
        reply(
          new ReadableStream({
            pull: (controller) => {
              made += 1;
              controller.enqueue(new Uint8Array(65_536));
            },
          }),
          text,
        ),
    });
  });
  const handler = lambdaHttp(buildServer({ features: [feature] }), { stream: true });
  const invocation = await invokeStreaming(
    handler,
    lambdaEvent("functionUrl", { path: "/large" }),
    { reads: false },
  );
  let last = -1;
  await vi.waitFor(
    () => {
      const before = last;
      last = made;
      expect(made).toBeGreaterThan(0);
      expect(made).toBe(before);
    },
    { interval: 300, timeout: 20_000 },
  );
  expect(made).toBeLessThan(200);
  invocation.leave();
  await invocation.returned;
});

const soon = { getRemainingTimeInMillis: () => 150 };

test("a handler that takes too long is answered with 504", async () => {
  const { prelude, body } = await respond("/never", { context: soon });
  expect(prelude).toMatchObject({ statusCode: 504 });
  expect(JSON.parse(body.toString())).toMatchObject({ error: "timeout" });
  expect(signals[0]?.aborted).toBe(true);
});

test("a response that takes too long is broken off", async () => {
  // The first byte goes out before, on a busy machine too.
  const context = { getRemainingTimeInMillis: () => 3_000 };
  const { prelude, isWhole } = await respond("/silent", { context });
  expect(prelude).toMatchObject({ statusCode: 200 });
  expect(isWhole).toBe(false);
  expect(said("response.cut_off")).toMatchObject([{ error: "timeout" }]);
  await waitFor(() => expect(cancelled).toHaveLength(1));
});

test("a stream that is collected for a whole response is cancelled if it takes too long", async () => {
  vi.unstubAllGlobals();
  const context = { getRemainingTimeInMillis: () => 3_000 } as never;
  const event = lambdaEvent("httpApi", { path: "/silent" });
  const { statusCode } = await lambdaHttp<LambdaHttpEvent>(server())(event, context);
  expect(statusCode).toBe(504);
  await waitFor(() => expect(cancelled).toHaveLength(1));
});

test.each(["httpApi", "httpApiV1", "loadBalancer"] as const)(
  "a front that does not stream gets a whole response: %s",
  async (front) => {
    const { contentType, prelude, body, isWhole } = await respond("/things/7", { front });
    expect([contentType, prelude, isWhole]).toEqual([undefined, undefined, true]);
    const { statusCode, body: sent } = JSON.parse(body.toString());
    expect([statusCode, JSON.parse(sent)]).toEqual([200, { id: "7" }]);
    expect(said("request.completed")).toMatchObject([{ status: 200 }]);
    release.resolve();
    const { body: late } = await respond("/broken/late", { front });
    expect(JSON.parse(late.toString())).toMatchObject({ statusCode: 500 });
  },
);

test("middlewares see the stream, and may replace it", async () => {
  const seen: unknown[] = [];
  const handler = streaming().use({
    after: ({ response }) => {
      const { body, headers } = response as { body: unknown; headers: Record<string, string> };
      seen.push(body);
      if (!(body instanceof ReadableStream)) return;
      headers["content-encoding"] = "gzip";
      Object.assign(response as object, {
        body: body.pipeThrough(new CompressionStream("gzip") as never),
      });
    },
  });
  release.resolve();
  const { prelude, body } = await respond("/wait", { handler });
  expect(prelude).toMatchObject({ statusCode: 200, headers: { "content-encoding": "gzip" } });
  expect(gunzipSync(body).toString()).toBe("first second");
  expect((await respond("/bytes", { handler })).body).toEqual(Buffer.from([0, 255, 0, 128]));
  expect((await respond("/things/7", { handler })).body.toString()).toBe('{"id":"7"}');
  expect((await respond("/missing", { handler })).prelude).toMatchObject({ statusCode: 404 });
  expect(seen.map((one) => typeof one)).toEqual(["object", "object", "string", "string"]);
  const watched = streaming().use({ after: ({ response }) => void seen.push(response) });
  expect((await respond("/wait", { handler: watched })).body.toString()).toBe("first second");
});

test("a middleware that replaces whole bytes by a stream need not correct their length", async () => {
  expect((await respond("/bytes")).prelude).toMatchObject({ headers: { "content-length": "4" } });
  const handler = streaming().use({
    after: ({ response }) => {
      Object.assign(response as object, { body: new Blob(["another"]).stream() });
    },
  });
  const { prelude, body } = await respond("/bytes", { handler });
  expect([prelude?.["headers"], body.toString()]).toEqual([
    expect.not.objectContaining({ "content-length": expect.anything() }),
    "another",
  ]);
});

test.each<[string, number, (request: { response: unknown }) => unknown]>([
  [
    "throws",
    500,
    () => {
      throw new Error("after the handler");
    },
  ],
  ["takes too long", 504, () => new Promise(() => {})],
  [
    "answers otherwise",
    200,
    (request) => {
      request.response = { statusCode: 200, body: "other" };
    },
  ],
])("a stream is cancelled if a middleware %s", async (_what, statusCode, after) => {
  const context = { getRemainingTimeInMillis: () => 3_000 };
  const handler = streaming().use({ after: (request) => after(request) as Promise<void> });
  const { prelude, isWhole } = await respond("/silent", { handler, context });
  expect([prelude, isWhole]).toEqual([expect.objectContaining({ statusCode }), true]);
  await waitFor(() => expect(cancelled).toHaveLength(1));
});

test("a middleware may answer with a Node stream", async () => {
  const { Readable } = await import("node:stream");
  const handler = streaming().use({
    before: () => ({
      statusCode: 203,
      headers: { "content-type": "text/plain" },
      body: Readable.from([Buffer.from("from "), "node"]) as never,
    }),
  });
  const { prelude, body } = await respond("/anything", { handler });
  expect(prelude).toMatchObject({ statusCode: 203 });
  expect(body.toString()).toBe("from node");
});

test("a function for one handler streams too, and other options are refused", async () => {
  const one = lambdaHandler<LambdaHttpEvent>(server(), "streamed.thing.show", { stream: true });
  expect((await respond("/things/7", { handler: one })).body.toString()).toBe('{"id":"7"}');
  expect((await respond("/none", { handler: one })).prelude).toMatchObject({ statusCode: 404 });
  expect(() => lambdaHttp(server(), { streams: true } as never)).toThrow("streams");
});
