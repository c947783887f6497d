import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import {
  assertHeaderValue,
  assertStatus,
  checkedHeaders,
  cookiesOf,
  guard,
  isNodeStream,
  type ReplyOptions,
  reply,
  replyBrand,
} from "./reply.ts";

// Plain JavaScript may pass anything, so each of these casts lets a test pass what the types refuse.
const refused = (options: unknown) => () => reply({}, options as ReplyOptions);

describe("reply", () => {
  test("keeps the body and the options, is marked, and cannot be changed", () => {
    const body = { id: 7 };
    const made = reply(body, { status: 201, headers: { "X-A": "1" } });

    expect(made).toEqual({ body, status: 201, headers: { "X-A": "1" }, [replyBrand]: true });
    expect(made.body).toBe(body);
    expect(Object.isFrozen(made)).toBe(true);
  });

  test("takes another reply as its options, and replaces its body", () => {
    const { body, status } = reply("two", reply("one", { status: 202 }));
    expect([body, status]).toEqual(["two", 202]);
  });

  test.each([
    [200, /the second argument is of type number; pass an object like \{ status: 200 \}/],
    ["ok", /the second argument is of type string; pass an object like \{ status: 201 \}/],
    [null, /the second argument is null; pass an object/],
    [[], /the second argument is a list; pass an object/],
    [new Map(), /the second argument is of type Map; pass Object\.fromEntries/],
    [Promise.resolve({}), /the second argument is of type Promise; await it/],
    [{ body: 1 }, /unknown option "body"; known are status, headers, cookies/],
    [{ statusCode: 201 }, /unknown option "statusCode"; known are status, headers, cookies/],
    [{ status: 199 }, /status 199 is not a whole number from 200 to 599/],
    [{ headers: [] }, /headers is a list; pass an object like \{ "cache-control": "no-store" \}/],
    [{ headers: new Headers() }, /headers is of type Headers; pass Object\.fromEntries\(headers\)/],
    [{ cookies: "a=1" }, /cookies is of type string; pass an object like/],
  ])("refuses the options %j and says what to pass", (options, message) => {
    expect(refused(options)).toThrow(TypeError);
    expect(refused(options)).toThrow(message);
  });

  test("gives a Node stream a listener for errors, so that an early error does not end the process", () => {
    const stream = new PassThrough();
    reply(stream, { headers: { "content-type": "text/plain" } });

    expect(stream.listenerCount("error")).toBe(1);
    expect(stream.emit("error", new Error("broken"))).toBe(true);
  });
});

test.each([null, "text", 7, {}, new EventEmitter()])("guard leaves %o alone", (body) => {
  expect(() => guard(body)).not.toThrow();
  if (body instanceof EventEmitter) expect(body.listenerCount("error")).toBe(0);
});

test.each<[body: object, expected: boolean]>([
  [new PassThrough(), true],
  [{ pipe: () => undefined, on: () => undefined }, true],
  [{ pipe: () => undefined }, false],
  [{ on: () => undefined }, false],
  [{ pipe: true, on: () => undefined }, false],
  [{ pipe: () => undefined, on: true }, false],
])("a Node stream has the functions `pipe` and `on`: case %#", (body, expected) => {
  expect(isNodeStream(body)).toBe(expected);
});

test.each([200, 204, 404, 599])("the status %d can be sent", (status) => {
  expect(() => assertStatus(status)).not.toThrow();
});

test.each([199, 600, 200.5, Number.NaN, "200", undefined])(
  "the status %o cannot be sent",
  (status) => {
    expect(() => assertStatus(status)).toThrow(/is not a whole number from 200 to 599/);
  },
);

describe("headers", () => {
  test("get names in lower case and keep their values", () => {
    expect(checkedHeaders({ "Cache-Control": "no-store", "x-b": "" })).toEqual({
      "cache-control": "no-store",
      "x-b": "",
    });
    expect(checkedHeaders(undefined)).toEqual({});
  });

  test.each([
    [{ "a b": "1" }, 'reply: header "a b" has no valid name'],
    [{ "": "1" }, 'reply: header "" has no valid name'],
    [
      { "Set-Cookie": "a=1" },
      "reply: header Set-Cookie is set by keelson; leave it out, and use `cookies`",
    ],
    [{ "content-length": "1" }, "reply: header content-length is set by keelson; leave it out"],
    [{ age: 5 }, "reply: header age is of type number; give it text, or leave it out"],
    [{ age: null }, "reply: header age is null; give it text, or leave it out"],
    [{ age: ["5"] }, "reply: header age is a list; give it text, or leave it out"],
  ])("are refused if they cannot be sent: %j", (headers, message) => {
    expect(() => checkedHeaders(headers)).toThrow(new TypeError(message));
  });

  test.each(["", "plain", "tab\there", "\x80\xff"])("may have the value %j", (value) => {
    expect(() => assertHeaderValue("x-a", value)).not.toThrow();
  });

  test.each(["line\nbreak", "\r", "\0", "\x7f", "\u{100}"])(
    "may not have the value %j, which the message does not repeat",
    (value) => {
      const message = "reply: header x-a has a character that a header cannot carry; encode it";
      expect(() => assertHeaderValue("x-a", value)).toThrow(new TypeError(message));
    },
  );
});

test("cookies are listed by name, and none are an empty list", () => {
  expect(cookiesOf({ a: { value: "1" }, b: "no cookie" })).toEqual([
    ["a", { value: "1" }],
    ["b", "no cookie"],
  ]);
  expect(cookiesOf(undefined)).toEqual([]);
});
