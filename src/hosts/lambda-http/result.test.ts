import { expect, test } from "vitest";
import { readResult } from "./result.ts";

const json = { "content-type": "application/json" };
const circle: Record<string, unknown> = {};
circle["self"] = circle;

test.each([
  ["null", null, { body: undefined }],
  ["a number", 7, { body: "7" }],
  ["nought", 0, { body: "0" }],
  ["a boolean", false, { body: "false" }],
  ["an object", { a: 1 }, { body: '{"a":1}', headers: { "content-type": "application/json" } }],
  [
    "data that is named as a stream is",
    { pipe: 1, getReader: "x" },
    { body: '{"pipe":1,"getReader":"x"}', headers: json },
  ],
  ["a list", [1], { body: "[1]", headers: { "content-type": "application/json" } }],
  ["bytes", new Uint8Array([0, 255]), { body: "AP8=", isBase64Encoded: true }],
  ["an empty text", "", { body: "" }],
])("a body may be %s", (_what, body, expected) => {
  expect(readResult({ statusCode: 200, body })).toEqual({
    statusCode: 200,
    headers: {},
    cookies: [],
    ...expected,
  });
});

test("a body that is an object keeps the content type given", () => {
  const headers = { "Content-Type": "application/vnd.api+json" };
  expect(readResult({ statusCode: 200, headers, body: {} }).headers).toEqual({
    "content-type": "application/vnd.api+json",
  });
});

test("treats null as absent, wherever a result has it", () => {
  const nothing = {
    headers: null,
    multiValueHeaders: null,
    cookies: null,
    isBase64Encoded: null,
    body: null,
  };
  expect(readResult({ statusCode: 204, ...nothing })).toEqual({
    statusCode: 204,
    headers: {},
    cookies: [],
  });
});

test("accepts a status that is text of three digits", () => {
  expect(readResult({ statusCode: "201" }).statusCode).toBe(201);
});

test.each([
  [true, true],
  ["true", true],
  [false, false],
  ["false", false],
  ["yes", false],
  [{}, false],
  [undefined, undefined],
])("reads isBase64Encoded of %j as %j", (isBase64Encoded, expected) => {
  expect(readResult({ statusCode: 200, body: "YQ==", isBase64Encoded }).isBase64Encoded).toBe(
    expected,
  );
});

test.each([
  ["an object", { a: 1 }, '{"a":1}'],
  ["null", null, "null"],
  ["a text", "hello", "hello"],
  ["an object whose statusCode is null", { statusCode: null }, '{"statusCode":null}'],
  ["nothing", undefined, undefined],
])("%s without a status is the body of a 200", (_what, result, body) => {
  expect(readResult(result)).toEqual({
    statusCode: 200,
    headers: { "content-type": "application/json" },
    cookies: [],
    body,
  });
});

test("leaves out a header without a value, and joins a list of values", () => {
  const headers = {
    "X-None": undefined,
    "X-Null": null,
    "X-Empty": "",
    "X-Many": ["a", null, 2],
    "X-No": [],
  };
  expect(
    readResult({ statusCode: 200, headers, multiValueHeaders: { "x-gone": [undefined] } }).headers,
  ).toEqual({
    "x-empty": "",
    "x-many": "a, 2",
  });
});

test("keeps every cookie once, whatever the spelling and place of its header", () => {
  const { cookies, headers } = readResult({
    statusCode: 200,
    cookies: ["a=1", "b=2"],
    headers: { "Set-Cookie": "c=3", "set-cookie": ["d=4", undefined], "SET-COOKIE": "a=1" },
    multiValueHeaders: { "Set-Cookie": ["e=5", "c=3"], "X-A": ["1", "2"] },
  });
  expect(cookies).toEqual(["a=1", "b=2", "c=3", "d=4", "e=5"]);
  expect(headers).toEqual({ "x-a": "1, 2" });
  expect(readResult({ statusCode: 200, cookies: "a=1" }).cookies).toEqual(["a=1"]);
});

test("serializes values as plain Lambda does: dates as text, functions and symbols not at all", () => {
  const when = new Date(0);
  const headers = {
    "Last-Modified": when,
    "X-Many": [when, Symbol("a")],
    "X-Function": () => "secret",
    "X-Symbol": Symbol("a"),
  };
  expect(readResult({ statusCode: 200, headers, body: when })).toEqual({
    statusCode: 200,
    headers: { "last-modified": "1970-01-01T00:00:00.000Z", "x-many": "1970-01-01T00:00:00.000Z" },
    cookies: [],
    body: "1970-01-01T00:00:00.000Z",
  });
  for (const body of [() => "secret", Symbol("a")])
    expect(readResult({ statusCode: 200, body }).body).toBeUndefined();
});

test("uses the value that a result's toJSON returns", () => {
  class Created {
    toJSON() {
      return { statusCode: 201, body: "made" };
    }
  }
  expect(readResult(new Created())).toMatchObject({ statusCode: 201, body: "made" });
});

test.each([
  ["a status that is none", { statusCode: 99 }, "statusCode is 99"],
  ["a status out of words", { statusCode: "OK" }, 'statusCode is "OK"'],
  ["a status that is an object", { statusCode: {} }, "statusCode is a value of type object"],
  ["a fraction of a status", { statusCode: 200.5 }, "statusCode is 200.5"],
  ["headers that are text", { statusCode: 200, headers: "a: b" }, "headers are not an object"],
  [
    "headers that are a list",
    { statusCode: 200, multiValueHeaders: [] },
    "multiValueHeaders are not an object",
  ],
  [
    "a header that is an object",
    { statusCode: 200, headers: { "X-A": { a: 1 } } },
    "the result's header X-A",
  ],
  ["cookies that are an object", { statusCode: 200, cookies: { a: "1" } }, "the result's cookies"],
  [
    "a header that has no text",
    { statusCode: 200, headers: { a: Object.create(null) } },
    "the result's header a",
  ],
  ["a body with a circle", { statusCode: 200, body: circle }, "body cannot be written as JSON"],
  ["a body with a BigInt", { statusCode: 200, body: [1n] }, "body cannot be written as JSON"],
  ["a stream of Node's", { statusCode: 200, body: { pipe: () => undefined } }, "stream"],
  ["a web stream", { statusCode: 200, body: new ReadableStream() }, "stream"],
  ["a circle without a status", circle, "result cannot be written as JSON"],
])("refuses %s, and the message names the part", (_what, result, message) => {
  expect(() => readResult(result)).toThrow(TypeError);
  expect(() => readResult(result)).toThrow(message);
});
