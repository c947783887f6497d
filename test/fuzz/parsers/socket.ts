import assert from "node:assert/strict";
import fc from "fast-check";
import { lazy } from "../../../src/base/process/lazy.ts";
import { startTestApp } from "../../../src/tools/testing/index.ts";
import { type Answered, sendRaw } from "../../hostile/raw-client.ts";
import { hostileServer, wrongWith } from "../../hostile/server.ts";
import { damagedBytes } from "../mutations.ts";
import { parser } from "../parser.ts";

const server = lazy(async () => {
  const app = await startTestApp(hostileServer());
  const port = Number(new URL((await app.fetch("/health/live")).url).port);
  return { app, port };
});

const headers = fc.array(
  fc.constantFrom(
    ...[
      "Accept: application/problem+json",
      "X-Request-ID: r1",
      "Cookie: a=b; c=%64",
      "Expect: 100-continue",
    ],
    ...[
      "Connection: keep-alive",
      "Connection: upgrade",
      "Upgrade: h2c",
      "Origin: http://a",
      "TE: trailers",
    ],
    ...[
      "Authorization: Bearer a.b.c",
      "Idempotency-Key: k",
      "X-Forwarded-For: 1.2.3.4",
      "Range: bytes=0-1",
    ],
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ),
  { maxLength: 3 },
);
const json = fc.constantFrom('{"name":"a"}', '{"name":"ü","size":1}', "{}", "[]", "");
const multipart = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n';

const withLength = (head: readonly string[], body: string) =>
  [...head, `Content-Length: ${Buffer.byteLength(body)}`, "", body].join("\r\n");
const chunked = (head: readonly string[], body: string) => {
  const half = Math.ceil(body.length / 2);
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const chunks = [body.slice(0, half), body.slice(half)].filter((text) => text !== "").map(chunk);
  return [...head, "Transfer-Encoding: chunked", "", `${chunks.join("")}0\r\n\r\n`].join("\r\n");
};
const target = fc.constantFrom(
  ...[
    "/things/1",
    "/things/1?a=1&a=2",
    "/things/%20",
    "/secrets",
    "/health/live",
    "*",
    "http://a/things/1",
  ],
);

const oneRequest = fc
  .record({
    post: fc.boolean(),
    isChunked: fc.boolean(),
    target,
    headers,
    body: fc.oneof(
      json.map((text) => ({ type: "application/json", path: "/things", text })),
      fc.constant({ type: "application/x-www-form-urlencoded", path: "/forms", text: "a=1&b=%20" }),
      fc.constant({ type: "multipart/form-data; boundary=b", path: "/forms", text: multipart }),
    ),
  })
  .map(({ post, isChunked, target, headers, body: { type, path, text } }) => {
    if (!post) return [`GET ${target} HTTP/1.1`, "Host: a", ...headers, "", ""].join("\r\n");
    const head = [`POST ${path} HTTP/1.1`, "Host: a", `Content-Type: ${type}`, ...headers];
    return isChunked ? chunked(head, text) : withLength(head, text);
  });

const connections = damagedBytes(
  fc
    .array(oneRequest, { minLength: 1, maxLength: 3 })
    .map((requests) => Buffer.from(requests.join(""))),
);

function check({ status, head, body }: Answered): void {
  assert.equal(wrongWith(status, status === 405 && body === "" ? "{}" : body), undefined);
  const names = head.split("\r\n").map((line) => line.split(":")[0]?.toLowerCase());
  assert.ok(!names.includes("x-injected"), `a header of the client was answered: ${head}`);
}

export const socketParsers = [
  parser({
    name: "http-socket",
    reads:
      "the bytes of a connection to the container: request lines, headers, lengths, chunks, bodies",
    share: 0.25,
    inputs: connections,
    holds: async (bytes) => {
      const { app, port } = await server.open();
      // A connection without a whole request ends without an answer.
      for (const answer of await sendRaw(port, bytes)) check(answer);
      assert.equal((await app.fetch("/health/live")).status, 200, "the server no longer answers");
    },
    close: async () => {
      await server.value?.app.close();
    },
  }),
];
