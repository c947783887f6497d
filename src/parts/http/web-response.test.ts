import { expect, test, vi } from "vitest";
import {
  inUtf8,
  parsedBody,
  ReadResponse,
  readResponse,
  UnreadableResponse,
} from "./web-response.ts";

test("stops reading a query's JSON when its client disconnects, but reads a write's to the end", async () => {
  const client = new AbortController();
  const gone = new Error("gone");
  const cancelled: unknown[] = [];
  const json = (pulls: (controller: ReadableStreamDefaultController<Uint8Array>) => void) => {
    const stream = new ReadableStream<Uint8Array>({
      pull: pulls,
      cancel: (reason) => void cancelled.push(reason),
    });
    return new Response(stream, { headers: { "content-type": "application/json" } });
  };
  const reading = readResponse(
    json(() => {}),
    "query",
    { needsJson: true, signal: client.signal },
  );
  client.abort(gone);

  expect([await reading, cancelled]).toEqual([new UnreadableResponse(gone), [gone]]);
  const late = json(() => {});
  expect(await readResponse(late, "query", { needsJson: true, signal: client.signal })).toEqual(
    new UnreadableResponse(gone),
  );
  expect(cancelled).toEqual([gone, gone]);
  const written = json((controller) => {
    controller.enqueue(Buffer.from("[]"));
    controller.close();
  });
  expect(
    await readResponse(written, "write", { needsJson: true, signal: client.signal }),
  ).toMatchObject({ value: [] });
});

const streamOf = (...chunks: unknown[]) =>
  new ReadableStream<unknown>({
    pull(controller) {
      if (chunks.length === 0) controller.close();
      else controller.enqueue(chunks.shift());
    },
  }) as ReadableStream<Uint8Array>; // safe: a handler may stream anything, which is what is tested
const typed = (type: string) => ({ headers: { "content-type": type } });

async function read(...given: Parameters<typeof readResponse>): Promise<ReadResponse> {
  const result = await readResponse(...given);
  if (result instanceof UnreadableResponse) throw result.error;
  return result;
}

const reason = async (...given: Parameters<typeof readResponse>) => {
  const result = await readResponse(...given);
  return result instanceof UnreadableResponse ? result.error : undefined;
};

test("reads status, headers and cookies, and keeps cookies out of the headers", async () => {
  const response = new Response("x", { status: 201, headers: { "X-Version": "1" } });
  response.headers.append("set-cookie", "a=1");
  response.headers.append("set-cookie", "b=2");
  expect({ ...(await read(response, "write")) }).toEqual({
    status: 201,
    headers: { "content-type": "text/plain;charset=UTF-8", "x-version": "1" },
    cookies: ["a=1", "b=2"],
    body: "x",
  });
});

test("adds no content type to a response without a body", async () => {
  expect({ ...(await read(new Response(null, { status: 204 }), "write")) }).toEqual({
    status: 204,
    headers: {},
    cookies: [],
    body: undefined,
  });
});

test.each<[string, string, string | Uint8Array]>([
  ["text", "text/plain", "ä"],
  ["text with a charset", "text/csv; charset=utf-8", "ä"],
  ["text in UTF-8 without a hyphen", "TEXT/PLAIN;charset=UTF8", "ä"],
  ["JSON", "application/json", "ä"],
  ["a JSON dialect", " application/problem+json", "ä"],
  ["XML", "application/xml", "ä"],
  ["an XML dialect", "application/atom+xml", "ä"],
  ["a script", "application/javascript;v=1", "ä"],
  ["another charset", "text/plain; charset=latin1", Buffer.from("ä")],
  ["an image", "image/svg+xml", Buffer.from("ä")],
  ["bytes", "application/octet-stream", Buffer.from("ä")],
  ["a type that only begins like JSON", "application/jsonlines", Buffer.from("ä")],
  ["a type that contains the name of another", "x/text/plain", Buffer.from("ä")],
])("%s is passed on as text or bytes, as a gateway keeps it", async (_what, type, body) => {
  const response = new Response("ä", typed(type));
  expect((await read(response, "write")).body).toEqual(body);
});

test("keeps text that is not UTF-8 as bytes, and gives untyped bytes a content type", async () => {
  const bytes = new Uint8Array([0xff]);
  expect((await read(new Response(bytes, typed("text/plain")), "write")).body).toEqual(
    Buffer.from(bytes),
  );
  const untyped = await read(new Response(bytes), "query");
  expect(untyped.headers).toEqual({ "content-type": "application/octet-stream" });
});

test("reads a query's body if it is already complete, and streams any other", async () => {
  expect((await read(new Response("x"), "query")).body).toBe("x");
  expect((await read(new Response(streamOf()), "query")).body).toEqual(new Uint8Array(0));

  const chunks = [Buffer.from("a"), Buffer.from("b"), Buffer.from("c")];
  const { body } = await read(new Response(streamOf(...chunks), typed("text/plain")), "query");
  expect(body).toBeInstanceOf(ReadableStream);
  expect(await new Response(body as ReadableStream).text()).toBe("abc");
});

test("a query's stream whose first chunk has not come is cancelled when the signal aborts", async () => {
  const client = new AbortController();
  const cancel = vi.fn();
  const held = () => new Response(new ReadableStream({ cancel }));
  const reading = readResponse(held(), "query", { signal: client.signal });
  const gone = new Error("gone");
  client.abort(gone);
  expect(await reading).toEqual(new UnreadableResponse(gone));
  const late = await readResponse(held(), "query", { signal: client.signal });
  expect(late).toEqual(new UnreadableResponse(gone));
  expect(cancel.mock.calls).toEqual([[gone], [gone]]);
});

test.each([0, 1])(
  "a chunk of a query's stream that is not bytes cancels it (after %i others)",
  async (before) => {
    const cancel = vi.fn();
    const chunks = [...Array(before).fill(Buffer.from("a")), "text"];
    const pull = (controller: ReadableStreamDefaultController<unknown>) =>
      controller.enqueue(chunks.shift());
    // Safe: a handler may stream anything.
    const stream = new ReadableStream({ pull, cancel }) as ReadableStream<Uint8Array>;
    const given = await readResponse(new Response(stream), "query");
    if (given instanceof ReadResponse)
      await expect(new Response(given.body as ReadableStream).text()).rejects.toThrow(
        "type string",
      );
    expect(given instanceof UnreadableResponse).toBe(before === 0);
    expect(cancel.mock.calls).toEqual([[expect.objectContaining({ name: "TypeError" })]]);
  },
);

test("propagates errors and cancellation of a query's stream", async () => {
  const failing = new Response(streamOf(Buffer.from("a"), "text"));
  const { body } = await read(failing, "query");
  await expect(new Response(body as ReadableStream).text()).rejects.toThrow(
    new TypeError(
      "reply: the stream of the Response has a chunk of type string; give it Uint8Array",
    ),
  );

  const cancelled: unknown[] = [];
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(Buffer.from("a")),
    cancel: (why) => void cancelled.push(why),
  });
  const kept = await read(new Response(endless), "query");
  await (kept.body as ReadableStream).cancel("gone");
  expect(cancelled).toEqual(["gone"]);
});

test("reads a query's JSON to the end only if it is needed", async () => {
  const json = () =>
    new Response(streamOf(Buffer.from("["), Buffer.from("1]")), typed("text/json"));
  expect((await read(json(), "query")).body).toBeInstanceOf(ReadableStream);
  expect((await read(json(), "query", { needsJson: true })).body).toBe("[1]");
  const text = new Response(streamOf(Buffer.from("a"), Buffer.from("b")), typed("text/plain"));
  expect((await read(text, "query", { needsJson: true })).body).toBeInstanceOf(ReadableStream);
});

test("refuses a buffered body over 10 MiB, and cancels its stream", async () => {
  const most = 10_485_760;
  const whole = await read(new Response(streamOf(new Uint8Array(most))), "write");
  expect((whole.body as Uint8Array).byteLength).toBe(most);

  const cancelled: unknown[] = [];
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(most / 2 + 1)),
    cancel: () => void cancelled.push("cancelled"),
  });
  expect(await reason(new Response(stream), "write")).toMatchObject({
    code: "response_too_large",
    message: `The response exceeds the ${most} bytes of a response that is read before it is sent`,
  });
  expect(cancelled).toEqual(["cancelled"]);
});

const used =
  "reply: the body of the Response has been read already; return another Response, or response.clone() from before";
test("refuses a response that has been read or is being read", async () => {
  const spent = new Response("x");
  await spent.text();
  expect(await reason(spent, "query")).toEqual(new TypeError(used));
  const locked = new Response("x");
  locked.body?.getReader();
  expect(await reason(locked, "query")).toEqual(new TypeError(used));
});

test("refuses a response that cannot be sent, and releases its body", async () => {
  const cancelled: string[] = [];
  const body = new ReadableStream<Uint8Array>({ cancel: () => void cancelled.push("cancelled") });
  const own = new Response(body, { headers: { "x-request-id": "1" } });
  expect(String(await reason(own, "query"))).toMatch("header x-request-id is set by keelson");
  expect(cancelled).toEqual(["cancelled"]);
  expect(String(await reason(Response.error(), "query"))).toMatch("status 0 is not");
  const status = { status: 200, headers: new Headers(), bodyUsed: false, body: null };
  const cookie = { ...status, headers: { getSetCookie: () => ["a=\n"], *[Symbol.iterator]() {} } };
  // Safe: these are the members that are read.
  expect(String(await reason(cookie as unknown as Response, "query"))).toMatch("set-cookie");
});

test.each<[string, string, string | Uint8Array, unknown]>([
  ["JSON", "application/json", '{"a":1}', { a: 1 }],
  ["JSON after a byte order mark", "application/json", "\ufeff[1]", [1]],
  ["JSON of several types", "application/json, text/plain", "[1]", [1]],
  ["a dialect in bytes", "application/vnd.a+json; charset=utf-8", Buffer.from("[1]"), [1]],
  ["JSON in UTF-16", "application/json; charset=utf-16le", Buffer.from("[1]", "utf16le"), [1]],
  ["bytes without a charset", "application/json; charset=", Buffer.from("[1]"), [1]],
  ["text", "text/plain", "[1]", "[1]"],
  ["a type that begins like JSON", "application/jsonlines", "[1]", "[1]"],
  ["a type that ends in JSON", "x application/json", "[1]", "[1]"],
])("gives code the value of %s", (_what, type, body, value) => {
  const response = new ReadResponse({
    status: 200,
    headers: { "content-type": type },
    cookies: [],
    body,
  });
  expect([response.value, response.isJson]).toEqual([value, value !== body]);
});

test("treats a stream as not JSON, and gives the stream itself as its value", () => {
  const body = streamOf();
  const headers = { "content-type": "application/json" };
  const response = new ReadResponse({ status: 200, headers, cookies: [], body });
  expect([response.isJson, response.value === body]).toEqual([false, true]);
  expect(parsedBody(headers, undefined)).toBeUndefined();
});

test("throws a clear error for JSON that cannot be read", () => {
  const json = { "content-type": "application/json" };
  const wrong =
    "reply: the Response says that its body is JSON, and it is not; change its content type";
  expect(() => parsedBody(json, "{")).toThrow(new TypeError(wrong));
  expect(() => parsedBody(json, new Uint8Array([0xff]))).toThrow(new TypeError(wrong));
  expect(() => parsedBody({ ...json, "content-encoding": " GZIP " }, "[]")).toThrow(
    new TypeError(
      "reply: the JSON of the Response is compressed; return it unencoded, without a content-encoding",
    ),
  );
  expect(parsedBody({ ...json, "content-encoding": " Identity " }, "[]")).toEqual([]);
});

test.each([
  ["application/json", "application/json"],
  ["application/json; charset=utf-8", "application/json; charset=utf-8"],
  ["application/json; charset=latin1", "application/json; charset=utf-8"],
  ['application/json;charset="utf-16"; a=b', "application/json; charset=utf-8; a=b"],
])("rewrites %s to %s, with UTF-8 as its charset", (given, expected) => {
  expect(inUtf8(given)).toBe(expected);
});
