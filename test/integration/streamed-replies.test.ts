import { createReadStream } from "node:fs";
import { PassThrough, Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { access, buildServer, defineFeature, reply } from "keelson";
import { type HttpApiEvent, type HttpApiResult, lambdaHttp } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { answersOtherwise } from "../support/held/hold.ts";
import { waitFor } from "../support/wait-for.ts";

const everyone = { access: access.everyone };
const text = { headers: { "content-type": "text/plain; charset=utf-8" } };
/** What a handler of the moment streams, and whether its source has been let go. */
let make: () => unknown = () => undefined;
let ended: string[] = [];

const exports = defineFeature("exports", (r) => {
  r.query("row.list", {
    route: "GET /rows",
    ...everyone,
    handler: async () => reply(make(), text),
  });
  r.query("row.checked", {
    route: "GET /checked",
    ...everyone,
    output: z.any(),
    handler: async () => reply(make(), text),
  });
  r.query("row.bare", { route: "GET /bare", ...everyone, handler: async () => make() });
  r.query("row.untyped", {
    route: "GET /untyped",
    ...everyone,
    handler: async () => reply(make()),
  });
  r.query("row.none", {
    route: "GET /none",
    ...everyone,
    status: 304,
    handler: async () => reply(make(), { status: 304 }),
  });
  r.write("row.make", {
    route: "POST /rows",
    ...everyone,
    handler: async () => reply(make(), text),
  });
});

/** A generator that says when it has ended, however it does. */
async function* rows(chunks: readonly unknown[], name = "generator") {
  try {
    for (const chunk of chunks) {
      await new Promise(setImmediate);
      if (chunk instanceof Error) throw chunk;
      yield chunk;
    }
  } finally {
    ended.push(name);
  }
}
const watched = <Stream extends Readable>(stream: Stream): Stream =>
  stream.on("close", () => ended.push("stream"));
const long = () => watched(new Readable({ read() {} }));

let app: TestApp;
const server = () => buildServer({ features: [exports], environment: "test" });
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());
afterEach(() => {
  ended = [];
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

interface Answered {
  readonly status: number;
  readonly type: unknown;
  readonly length: unknown;
  readonly body: string;
}
const container = async (method: string, path: string): Promise<Answered> => {
  const response = await app.fetch(path, { method });
  const { status, headers } = response;
  return {
    status,
    type: headers.get("content-type"),
    length: headers.get("content-length"),
    body: await response.text(),
  };
};
const lambda = async (method: string, path: string): Promise<Answered> => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true); // its log
  const event = {
    version: "2.0",
    rawPath: path,
    headers: {},
    requestContext: { http: { method } },
  };
  // Safe: the parts of an event that are read.
  const result: HttpApiResult = await lambdaHttp(server())(
    event as unknown as HttpApiEvent,
    {} as never,
  );
  const { statusCode, headers = {}, body = "", isBase64Encoded = false } = result;
  const given = Buffer.from(body, isBase64Encoded ? "base64" : "utf8").toString();
  return { status: Number(statusCode), type: headers["content-type"], length: null, body: given };
};
const ownPath = fileURLToPath(import.meta.url);

describe.each(Object.entries({ container, lambda }))(
  "in the %s host a query that streams",
  (_, send) => {
    test.each<[string, () => unknown, string]>([
      ["an async generator of text", () => rows(["a,", "", "ü✓"]), "a,ü✓"],
      ["one of bytes", () => rows([Buffer.from("a,"), new Uint8Array([98])]), "a,b"],
      ["one that yields nothing", () => rows([]), ""],
      [
        "an object that can be iterated over time",
        () => {
          const left = ["a", "b"];
          const next = async () => ({ done: left.length === 0, value: left.shift() });
          return { [Symbol.asyncIterator]: () => ({ next }) };
        },
        "ab",
      ],
      ["a Readable of text", () => Readable.from(["a,", "b"]), "a,b"],
      ["a Readable of bytes", () => Readable.from([Buffer.from("a,"), Buffer.from("b")]), "a,b"],
      ["a Duplex", () => new PassThrough().end("a,b"), "a,b"],
      [
        "a Readable in an encoding",
        () => createReadStream(ownPath, { end: 5 }).setEncoding("utf8"),
        "import",
      ],
      ["a file", () => createReadStream(ownPath, { end: 5, highWaterMark: 1 }), "import"],
      ["a web stream of text", () => ReadableStream.from(["a,", "ü"]), "a,ü"],
      ["a web stream of bytes", () => new Response("a,b").body, "a,b"],
    ])("%s", async (_case, source, body) => {
      make = source;
      for (const path of ["/rows", "/checked"]) {
        expect(await send("GET", path)).toEqual({
          status: 200,
          type: "text/plain; charset=utf-8",
          length: null,
          body,
        });
      }
      answersOtherwise("what a schema does not describe is sent all the same");
    });

    test.each<[string, () => unknown]>([
      ["an async generator", () => rows([new Error("s3cret")])],
      ["a Readable", () => watched(new Readable({ read() {} })).destroy(new Error("s3cret"))],
      ["a file that is not there", () => createReadStream(`${ownPath}.gone`)],
      ["chunks that are neither text nor bytes", () => rows([{ a: 1 }, "b"])],
      ["such chunks of a Readable", () => Readable.from([7, 8])],
      ["a stream that cannot be read", () => new Writable({ write: () => {} })],
    ])(
      "answers 500, without details, when its source fails before the first chunk: %s",
      async (_case, source) => {
        make = source;
        const { status, type, body } = await send("GET", "/rows");

        expect([status, type, JSON.parse(body)]).toMatchObject([
          500,
          "application/json; charset=utf-8",
          { error: "internal_error" },
        ]);
        expect(body).not.toContain("s3cret");
      },
    );

    test.each([["/bare"], ["/untyped"]])(
      "answers 500 without a content type, and releases its source: %s",
      async (path) => {
        for (const source of [() => rows(["a"]), long]) {
          make = source;
          expect((await send("GET", path)).status).toBe(500);
        }
        await waitFor(() => expect(ended).toContain("stream"));
      },
    );

    test.each([
      ["HEAD", "/rows", 200],
      ["GET", "/none", 304],
    ] as const)(
      "sends nothing when the answer has no body, and releases its source: %s %s",
      async (method, path, status) => {
        make = long;
        expect(await send(method, path)).toMatchObject({ status, body: "" });
        await waitFor(() => expect(ended).toEqual(["stream"]));
        make = () => rows(["a"]);
        expect(await send(method, path)).toMatchObject({ status, body: "" });
      },
    );

    test("is allowed, while a write's stream is refused, and its source released", async () => {
      for (const source of [() => rows(["a"]), long, () => new Response("a").body]) {
        make = source;
        const { status, body } = await send("POST", "/rows");
        expect([status, JSON.parse(body)]).toMatchObject([500, { error: "internal_error" }]);
      }
      await waitFor(() => expect(ended).toEqual(["stream"]));
    });
  },
);

test("a container sends each chunk as it arrives", async () => {
  let go = () => {};
  let isWaiting = false;
  make = async function* () {
    yield "first,";
    await new Promise<void>((resolve) => {
      go = resolve;
      isWaiting = true;
    });
    yield "second";
  };
  const { body } = await app.fetch("/rows");
  const reader = (body as ReadableStream<Uint8Array>)
    .pipeThrough(new TextDecoderStream())
    .getReader();

  expect((await reader.read()).value).toBe("first,");
  await waitFor(() => expect(isWaiting).toBe(true));
  go();
  expect((await reader.read()).value).toBe("second");
  expect((await reader.read()).done).toBe(true);
});

test.each<[string, () => unknown, string]>([
  [
    "a generator",
    () => rows(Array.from({ length: 100_000 }, () => "row\n".repeat(1_000))),
    "generator",
  ],
  ["a Readable that gives no more", long, "stream"],
])("a client that disconnects releases the source: %s", async (_case, source, name) => {
  make = () => {
    const made = source();
    if (made instanceof Readable) made.push("row\n");
    return made;
  };
  const client = new AbortController();
  const { body } = await app.fetch("/rows", { signal: client.signal });
  await (body as ReadableStream).getReader().read();
  client.abort();

  await waitFor(() => expect(ended).toContain(name));
});

test("a client that disconnects before the first chunk releases the source too", async () => {
  const held = () => new ReadableStream({ cancel: () => void ended.push("stream") });
  for (const [path, source] of [
    ["/rows", long],
    ["/rows", held],
    ["/bare", () => new Response(held())],
  ] as const) {
    ended = [];
    let isAsked = false;
    make = () => {
      isAsked = true;
      return source();
    };
    const client = new AbortController();
    const answer = app.fetch(path, { signal: client.signal }).catch((error: Error) => error.name);
    await waitFor(() => expect(isAsked).toBe(true));
    client.abort();

    expect(await answer).toBe("AbortError");
    await waitFor(() => expect(ended).toEqual(["stream"]));
  }
});

test("a source that fails halfway is cut off in a container, and a 500 in Lambda", async () => {
  make = () => rows(["begun", new Error("torn")]);
  const response = await app.fetch("/rows");

  await expect(response.text()).rejects.toThrow();
  expect(await lambda("GET", "/rows")).toMatchObject({ status: 500 });
  await waitFor(() =>
    expect(app.logs).toContainEqual(
      expect.objectContaining({ msg: "response.cut_off", message: "torn" }),
    ),
  );
});

test("code that calls the query gets the stream itself", async () => {
  const given = rows(["a"]);
  make = () => given;
  expect(await app.call("exports.row.list")).toBe(given);
});
