import { Readable, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { requestView } from "./message.ts";
import { reply } from "./reply.ts";
import {
  bodyOf,
  isDescribed,
  isReply,
  isWebResponse,
  isWebStream,
  jsonText,
  toResponse,
} from "./response.ts";
import { ReadResponse, UnreadableResponse } from "./web-response.ts";

const query = { kind: "query", head: false, development: false } as const;
const write = { ...query, kind: "write" } as const;
const text = { "content-type": "text/plain" };

describe("a result", () => {
  test("is sent as 200 JSON, and undefined as 204", () => {
    expect(toResponse({ a: "ä" }, query)).toEqual({
      status: 200,
      headers: { "content-type": "application/json; charset=utf-8", "content-length": "10" },
      cookies: [],
      body: '{"a":"ä"}',
    });
    expect(toResponse(null, query)).toMatchObject({ status: 200, body: "null" });
    expect(toResponse(undefined, write)).toEqual({
      status: 204,
      headers: {},
      cookies: [],
      body: undefined,
    });
  });

  test("has the first status its handler declares, and undefined has 204 if that is declared", () => {
    const statusOf = (result: unknown, status: readonly number[]) =>
      toResponse(result, { ...write, status }).status;
    expect(statusOf({ id: 1 }, [201])).toBe(201);
    expect(statusOf({ id: 1 }, [202, 204])).toBe(202);
    expect(statusOf(undefined, [202, 204])).toBe(204);
    expect(statusOf(undefined, [202])).toBe(202);
    expect(statusOf(reply({ id: 1 }, { status: 200 }), [201])).toBe(200);
    expect(statusOf(reply({ id: 1 }), [201])).toBe(201);
  });

  test("in a reply takes its status, headers and cookies", () => {
    const response = toResponse(
      reply(
        { id: 1 },
        { status: 201, headers: { Location: "/x" }, cookies: { a: { value: "b c" } } },
      ),
      write,
    );

    expect(response).toMatchObject({
      status: 201,
      headers: { location: "/x" },
      cookies: ["a=b%20c; Path=/; HttpOnly; Secure; SameSite=Lax"],
    });
  });

  test("of text or bytes is sent unchanged with its own content type", () => {
    expect(toResponse(reply("hällo", { headers: text }), query)).toMatchObject({
      body: "hällo",
      headers: { "content-length": "6" },
    });
    expect(toResponse(reply(new Uint8Array(3), { headers: text }), query)).toMatchObject({
      headers: { "content-length": "3" },
    });
  });

  test("of an ArrayBuffer is sent as bytes", () => {
    expect(toResponse(reply(new ArrayBuffer(4), { headers: text }), query)).toMatchObject({
      body: new Uint8Array(4),
      headers: { "content-length": "4" },
    });
  });

  test("of a stream is passed on by a query without a length", () => {
    const { headers, body } = toResponse(reply(new Response("x").body, { headers: text }), query);

    expect(body).toBeInstanceOf(ReadableStream);
    expect(headers).toEqual(text);
  });

  test("with members named like a stream's is data", () => {
    for (const data of [{ pipe: "a" }, { pipe: "a", on: true }]) {
      expect(toResponse(data, query).body).toBe(JSON.stringify(data));
    }
    const observable = { pipe: () => undefined, a: 1 };
    expect(toResponse(reply(observable), query).body).toBe('{"a":1}');
  });

  test("for HEAD keeps the headers and has no body", () => {
    expect(toResponse({ a: 1 }, { ...query, head: true })).toMatchObject({
      headers: { "content-length": "7" },
      body: undefined,
    });
  });

  test("of a stream that will not be read is cancelled", () => {
    const cancelled: string[] = [];
    const stream = (name: string) =>
      new ReadableStream<Uint8Array>({
        cancel: () => {
          cancelled.push(name);
          throw new Error("the source is broken");
        },
      });

    expect(
      toResponse(reply(stream("head"), { headers: text }), { ...query, head: true }).body,
    ).toBeUndefined();
    expect(toResponse(reply(stream("unchanged"), { status: 304 }), query).body).toBeUndefined();
    expect(cancelled).toEqual(["head", "unchanged"]);
  });

  test("with status 205 has no body, and the length 0, which Chromium needs", () => {
    expect(toResponse(reply({ a: 1 }, { status: 205 }), query)).toEqual({
      status: 205,
      headers: { "content-length": "0" },
      cookies: [],
      body: undefined,
    });
  });

  test.each([204, 304])(
    "with status %i, which forbids a body, has no body and no length",
    (status) => {
      const response = toResponse(reply({ a: 1 }, { status }), query);

      expect(response).toEqual({ status, headers: {}, cookies: [], body: undefined });
    },
  );

  test("without a body keeps its reply's status", () => {
    expect(toResponse(reply(undefined, { status: 202 }), write)).toMatchObject({
      status: 202,
      body: undefined,
    });
  });

  test.each<[string, unknown, RegExp]>([
    ["a reply that was changed", { ...reply({}), status: 101 }, /status 101/],
    ["text without a content type", "text", /need a content type/],
    ["a stream from a write", reply(new Response("x").body, { headers: text }), /only a query/],
    ["a BigInt", { rows: [{ size: 1n }] }, /BigInt, at "size"/],
    ["nothing but a BigInt", 1n, /BigInt\); return plain data/],
    ["a circle", circle(), /circular.*property 'self'/],
    [
      "a toJSON that throws nonsense",
      {
        toJSON: () => {
          throw 7;
        },
      },
      /it throws/,
    ],
    ["a function", () => 1, /JSON does not have/],
    [
      "a stream of Node's from a write",
      reply(Readable.from(["x"]), { headers: text }),
      /only a query/,
    ],
    ["what yields over time from a write", Readable.from(["x"]), /only a query/],
  ])("that is %s throws a clear error", (_name, result, message) => {
    expect(() => toResponse(result, write)).toThrow(message);
  });

  test.each<[string, unknown, string]>([
    ["a status below 200", { status: 101 }, "status 101 is not a whole number from 200 to 599"],
    [
      "a status that is text",
      { status: "201" },
      'status "201" is not a whole number from 200 to 599',
    ],
    [
      "a status in place of the options",
      201,
      "the second argument is of type number; pass an object like { status: 201 }",
    ],
    [
      "null in place of the options",
      null,
      "the second argument is null; pass an object like { status: 201 }",
    ],
    [
      "an option that nobody knows",
      { statusCode: 201 },
      'unknown option "statusCode"; known are status, headers, cookies',
    ],
    [
      "a body in the options",
      { body: "x" },
      'unknown option "body"; known are status, headers, cookies',
    ],
    ["a header that is no name", { headers: { "a b": "c" } }, 'header "a b" has no valid name'],
    [
      "a header that splits the response",
      { headers: { a: "b\r\nc: d" } },
      "header a has a character that a header cannot carry",
    ],
    [
      "a request ID of its own",
      { headers: { "X-Request-ID": "x" } },
      "header X-Request-ID is set by keelson; leave it out",
    ],
    [
      "set-cookie as a header",
      { headers: { "Set-Cookie": "x" } },
      "header Set-Cookie is set by keelson; leave it out, and use `cookies`",
    ],
    [
      "a header that is absent",
      { headers: { etag: undefined } },
      "header etag is of type undefined; give it text",
    ],
    [
      "a header of several values",
      { headers: { vary: ["a", "b"] } },
      "header vary is a list; give it text",
    ],
    [
      "headers as a list",
      { headers: ["a: b"] },
      'headers is a list; pass an object like { "cache-control": "no-store" }',
    ],
    [
      "headers as an object of fetch",
      { headers: new Headers({ a: "b" }) },
      "headers is of type Headers; pass Object.fromEntries(headers)",
    ],
    [
      "headers as a map",
      { headers: new Map([["a", "b"]]) },
      "headers is of type Map; pass Object.fromEntries(headers)",
    ],
    [
      "headers that are not there yet",
      { headers: Promise.resolve({}) },
      "headers is of type Promise; await it",
    ],
    [
      "cookies as a list",
      { cookies: ["a=secret"] },
      'cookies is a list; pass an object like { a: { value: "1" } }',
    ],
    [
      "cookies as text",
      { cookies: "a=secret" },
      'cookies is of type string; pass an object like { a: { value: "1" } }',
    ],
    [
      "cookies as a map",
      { cookies: new Map([["a", { value: "secret" }]]) },
      "cookies is of type Map; pass Object.fromEntries(cookies)",
    ],
    [
      "a cookie as text",
      { cookies: { a: "secret" } },
      'cookie a: it is not an object; pass { value: "..." }',
    ],
    [
      "a cookie that is null",
      { cookies: { a: null } },
      'cookie a: it is not an object; pass { value: "..." }',
    ],
    [
      "a cookie that is no name",
      { cookies: { "a;b": { value: "1" } } },
      'cookie "a;b": the name is not a token of RFC 6265',
    ],
    [
      "a cookie without a value",
      { cookies: { a: {} } },
      "cookie a: its value is of type undefined; give it text",
    ],
    [
      "a cookie of a number",
      { cookies: { a: { value: 5 } } },
      "cookie a: its value is of type number; give it text",
    ],
    [
      "a cookie with an option that nobody knows",
      { cookies: { a: { value: "secret", maxAge: 1 } } },
      'cookie a: unknown option "maxAge"',
    ],
    [
      "a cookie whose flag is text",
      { cookies: { a: { value: "secret", httpOnly: "no" } } },
      'cookie a: httpOnly "no" is not true or false',
    ],
  ])("with %s is refused when the reply is created", (_name, options, message) => {
    const make = () => reply({}, options as never);

    expect(make).toThrow(TypeError);
    expect(make).toThrow(`reply: ${message}`);
    expect(make).not.toThrow("secret");
  });

  test("may be copied from another reply", () => {
    expect(
      toResponse(reply("b", { ...reply("a", { headers: text }), status: 201 }), query),
    ).toMatchObject({
      status: 201,
      headers: text,
      body: "b",
    });
  });

  test("is recognised as a reply only by its brand", () => {
    expect(isReply({ body: 1, status: 200 })).toBe(false);
    expect(isReply(null)).toBe(false);
  });
});

test("gives a handler a read-only request with its cookies parsed once", () => {
  const view = requestView(
    {
      method: "GET",
      path: "/x",
      query: "",
      headers: { cookie: "a=1" },
      ip: "::1",
      signal: undefined,
      gatewayClaims: undefined,
      readBody: async () => new Uint8Array(),
    },
    new Uint8Array(2),
  );

  expect(view).toMatchObject({ method: "GET", path: "/x", ip: "::1", cookies: { a: "1" } });
  expect(view.cookies).toBe(view.cookies);
  expect(
    Object.isFrozen(view) && Object.isFrozen(view.headers) && Object.isFrozen(view.cookies),
  ).toBe(true);
});

describe("a Response that has been read", () => {
  const json = { "content-type": "application/json" };
  const given = { status: 201, headers: json, cookies: ["a=1"], body: "[1]" };

  test("is sent with its own status, headers and cookies", () => {
    expect(toResponse(new ReadResponse(given), { ...write, status: [200] })).toEqual({
      ...given,
      headers: { ...json, "content-length": "3" },
    });
    expect(given.headers).toEqual(json);
  });

  test("gives its parsed body to code", () => {
    expect(bodyOf(new ReadResponse(given))).toEqual([1]);
    expect(bodyOf(reply("b", { headers: text }))).toBe("b");
    expect(bodyOf("plain")).toBe("plain");
  });

  test("throws its error if it could not be read", () => {
    const error = new TypeError("locked");
    expect(() => toResponse(new UnreadableResponse(error), query)).toThrow(error);
    expect(() => bodyOf(new UnreadableResponse(error))).toThrow(error);
  });
});

test("recognises a web Response by its members, and not plain data", () => {
  const headers = { getSetCookie: () => [] };
  expect(isWebResponse(new Response())).toBe(true);
  expect(isWebResponse({ bodyUsed: false, headers })).toBe(true);
  for (const data of [null, undefined, "x", { bodyUsed: false }, { headers }])
    expect(isWebResponse(data)).toBe(false);
  for (const headers of [null, {}, { getSetCookie: "x" }])
    expect(isWebResponse({ bodyUsed: false, headers })).toBe(false);
});

test("recognises a web stream by its class, not by its member names", () => {
  expect(isWebStream(new ReadableStream())).toBe(true);
  for (const body of [null, "x", {}, { getReader: () => undefined }, Readable.from([])])
    expect(isWebStream(body)).toBe(false);
});

test.each<[boolean, string, unknown]>([
  [true, "data", { a: 1 }],
  [true, "nothing", undefined],
  [true, "text", "x"],
  [true, "data in a reply", reply({ a: 1 })],
  [true, "data with status 299", reply({ a: 1 }, { status: 299 })],
  [false, "an error", reply({ a: 1 }, { status: 400 })],
  [false, "a redirect", reply({ a: 1 }, { status: 300 })],
  [false, "bytes", new Uint8Array(1)],
  [false, "a buffer", new ArrayBuffer(1)],
  [false, "bytes in a reply", reply(new Uint8Array(1))],
  [false, "a web stream", new ReadableStream()],
  [false, "a Node stream", Readable.from([])],
  [false, "a Node stream that is only writable", new Writable()],
  [false, "an async iterable", (async function* () {})()],
  [false, "a Response that cannot be read", new UnreadableResponse(new Error("locked"))],
  ...(
    [
      [true, 200, "application/json"],
      [false, 300, "application/json"],
      [false, 200, "text/plain"],
    ] as const
  ).map(([isIt, status, type]): [boolean, string, unknown] => [
    isIt,
    `a Response of ${type} with status ${status}`,
    new ReadResponse({ status, headers: { "content-type": type }, cookies: [], body: "[]" }),
  ]),
])("returns %s for whether a schema describes %s", (expected, _what, result) => {
  expect(isDescribed(result)).toBe(expected);
});

describe("a streamed body", () => {
  const sent = (body: unknown) =>
    toResponse(reply(body, { headers: text }), query).body as ReadableStream<unknown>;

  test("is passed on chunk by chunk, and only on demand", async () => {
    const made: string[] = [];
    async function* source() {
      for (const chunk of ["a", "b"]) {
        made.push(chunk);
        yield chunk;
      }
    }
    const reader = sent(source()).getReader();
    await Promise.resolve();
    expect(made).toEqual([]);
    expect([await reader.read(), await reader.read(), await reader.read()]).toEqual([
      { done: false, value: "a" },
      { done: false, value: "b" },
      { done: true, value: undefined },
    ]);
  });

  test("releases its source when it is cancelled", async () => {
    const node = Readable.from(["a"]);
    await sent(node).cancel();
    expect(node.destroyed).toBe(true);

    const ends: string[] = [];
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: "a" }),
        return: async () => {
          ends.push("returned");
          throw new Error("broken");
        },
      }),
    };
    await sent(source).cancel();
    expect(ends).toEqual(["returned"]);
    await sent({ [Symbol.asyncIterator]: () => ({ next: async () => ({ done: true }) }) }).cancel();
  });

  test("is refused if it is only writable", () => {
    expect(() => sent(new Writable())).toThrow(
      "reply: the body is a stream that cannot be read; pass a Readable, a web stream or an async iterable",
    );
  });
});

test("explains why JSON cannot be written, and names the member", () => {
  expect(jsonText({ a: [1] })).toBe('{"a":[1]}');
  expect(() => jsonText({ a: { size: 1n } })).toThrow(
    /\(.*BigInt.*, at "size"\); return plain data$/,
  );
  expect(() => jsonText(1n)).toThrow(/^the result cannot be written as JSON \([^,]*\)/);
  const text = () => {
    throw "text";
  };
  expect(() => jsonText({ toJSON: text })).toThrow("(it throws); return plain data");
  expect(() => jsonText(() => 1)).toThrow(
    "the result is a function, which JSON does not have; return plain data",
  );
});

function circle(): unknown {
  const value: Record<string, unknown> = {};
  value["self"] = value;
  return value;
}
