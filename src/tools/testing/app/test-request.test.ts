import { expect, test } from "vitest";
import { requestInit } from "./test-request.ts";

test("headers replace those that the body and the caller need, in any case", () => {
  const headers = { "Content-Type": "application/merge-patch+json", AUTHORIZATION: "Bearer mine" };
  const sent = new Headers(requestInit({ body: {}, headers }, { authorization: "Bearer" }).headers);
  expect(Object.fromEntries(sent)).toEqual({
    "content-type": "application/merge-patch+json",
    authorization: "Bearer mine",
  });
});

test.each([
  ["bytes", new Uint8Array([1, 2]), null, "\u0001\u0002"],
  ["an ArrayBuffer", new Uint8Array([1, 2]).buffer, null, "\u0001\u0002"],
  ["a Blob", new Blob(["ab"], { type: "text/csv" }), "text/csv", "ab"],
  ["URLSearchParams", new URLSearchParams({ a: "1 2" }), /urlencoded/, "a=1+2"],
  ["a string", "ab", /plain/, "ab"],
  ["an object", { a: 1 }, /json/, '{"a":1}'],
] as const)(
  "%s is sent as fetch sends it, and an object as JSON",
  async (_name, body, type, text) => {
    const sent = new Request("http://localhost", requestInit({ body }));
    const contentType = sent.headers.get("content-type");
    if (type === null) expect(contentType).toBeNull();
    else expect(contentType).toMatch(type);
    expect(await sent.text()).toBe(text);
  },
);
