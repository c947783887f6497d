import fc from "fast-check";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runs } from "../support/runs.ts";
import { sendRaw } from "./raw-client.ts";
import { hostileServer, wrongWith } from "./server.ts";

let app: TestApp;
let port = 0;
beforeAll(async () => {
  app = await startTestApp(hostileServer());
  port = Number(new URL((await app.fetch("/health/live")).url).port);
});
afterAll(() => app.close());

const post = (body: string, ...headers: string[]) =>
  [
    "POST /things HTTP/1.1",
    "Host: a",
    "Content-Type: application/json",
    "Connection: close",
    ...headers,
    "",
    body,
  ].join("\r\n");

test.each([
  ["both lengths", post('{"name":"a"}', "Content-Length: 12", "Transfer-Encoding: chunked"), 400],
  ["two lengths", post('{"name":"a"}', "Content-Length: 12", "Content-Length: 13"), 400],
  ["a length that is none", post("{}", "Content-Length: two"), 400],
  ["a negative length", post("{}", "Content-Length: -2"), 400],
  ["a length beyond all numbers", post("{}", "Content-Length: 99999999999999999999"), 400],
  ["a length over the limit", post("{}", "Content-Length: 99999999"), 413],
  ["chunks that are none", post("zz\r\n{}", "Transfer-Encoding: chunked"), 400],
  ["chunks within chunks", post("0\r\n\r\n", "Transfer-Encoding: chunked, chunked"), 400],
  ["an encoding nobody knows", post("{}", "Transfer-Encoding: xchunked"), 400],
  ["a name with a blank", post("{}", "Content-Length : 2"), 400],
  ["a folded header", post("{}", "X-A: 1", " folded", "Content-Length: 2"), 400],
  ["a NUL in a header", post("{}", "X-A: a\u0000b", "Content-Length: 2"), 400],
  ["no host", "GET /things/1 HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
  ["another protocol", "GET /things/1 HTTP/9.9\r\nHost: a\r\n\r\n", 400],
  ["no request", "\u0016\u0003\u0001 nonsense\r\n\r\n", 400],
  [
    "a header that is too large",
    `GET /things/1 HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(100_000)}\r\n\r\n`,
    431,
  ],
  [
    "more than the last request",
    post('{"name":"a"}GET /secrets HTTP/1.1\r\nHost: a\r\n\r\n', "Content-Length: 12"),
    400,
  ],
])(
  "%s is answered once, in the uniform body, and the connection is closed",
  async (_case, bytes, status) => {
    const [first, ...more] = await sendRaw(port, bytes);
    expect(first?.status).toBe(status);
    expect(more).toEqual([]);
    expect(wrongWith(Number(first?.status), String(first?.body))).toBeUndefined();
    expect(first?.head).toMatch(/x-request-id: /i);
  },
);

const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

test.each([
  ["a prototype", '{"name":"a","__proto__":{"polluted":1}}'],
  ["a constructor", '{"name":"a","constructor":{"prototype":{"polluted":1}}}'],
  ["a name twice", '{"name":"a","name":"b"}'],
  ["a number beyond all numbers", '{"name":"a","size":1e999}'],
  ["many digits", `{"name":"a","size":${"9".repeat(100_000)}}`],
  ["depth", `{"name":"a","x":${deep(5_000)}}`],
  ["more depth", `{"name":"a","x":${deep(100_000)}}`],
  ["a list of lists", `{"name":"a","x":${"[".repeat(50_000)}${"]".repeat(50_000)}}`],
  [
    "invalid UTF-8",
    new Uint8Array([...new TextEncoder().encode('{"name":"'), 0xff, 0xc0, 0x22, 0x7d]),
  ],
  ["half a surrogate", String.raw`{"name":"\ud800"}`],
  ["a byte order mark", '\ufeff{"name":"a"}'],
  ["nothing", ""],
  ["null", "null"],
  ["a text", '"name"'],
  ["half of it", '{"name":'],
  ["a comment", '{"name":"a"/**/}'],
  ["NaN", '{"name":NaN}'],
])("JSON with %s is accepted or refused without harm", async (_case, body) => {
  const response = await app.fetch("/things", {
    method: "POST",
    body,
    headers: { "content-type": "application/json" },
  });
  const answered = await response.text();
  expect(wrongWith(response.status, answered)).toBeUndefined();
  expect(answered).not.toContain('"polluted":true');
  expect("polluted" in {}).toBe(false);
});

test("no path, query or header causes a 500, and every error names the problem", async () => {
  const bytes = fc.string({
    unit: fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code)),
    maxLength: 40,
  });
  const odd = fc.constantFrom(
    "%00",
    "%zz",
    "%ff",
    "..",
    "%2e%2e",
    "//",
    "\\",
    "?",
    "&",
    "=",
    "#",
    "__proto__",
    "%c0%af",
    ";",
    "a".repeat(3_000),
  );
  const part = fc.oneof(bytes, odd);
  const header = fc.tuple(
    fc.constantFrom(
      "X-Request-ID",
      "Authorization",
      "Idempotency-Key",
      "Accept",
      "Cookie",
      "Origin",
      "Content-Encoding",
      "traceparent",
      "Range",
      "If-None-Match",
      "Expect",
    ),
    bytes,
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("GET", "POST", "HEAD", "DELETE", "OPTIONS", "PATCH", "PROPFIND"),
      fc.array(part, { maxLength: 3 }),
      part,
      fc.array(header, { maxLength: 4 }),
      async (method, path, query, headers) => {
        const lines = [
          `${method} /things/${path.join("/")}?${query} HTTP/1.1`,
          "Host: a",
          "Connection: close",
          ...headers.map(([name, value]) => `${name}: ${value}`),
          "",
          "",
        ];
        const [first] = await sendRaw(port, Buffer.from(lines.join("\r\n"), "latin1"));
        expect(first).toBeDefined();
        if (method !== "HEAD")
          expect(wrongWith(Number(first?.status), String(first?.body))).toBeUndefined();
        expect(Number(first?.status)).toBeLessThan(500);
      },
    ),
    { numRuns: runs(400) },
  );
});

test("answers have a date, a length and no ETag; HEAD has the same headers and no body; errors vary on Accept", async () => {
  const get = await app.fetch("/things/1");
  const head = await app.fetch("/things/1", { method: "HEAD" });
  for (const name of ["date", "content-length"]) expect(get.headers.get(name)).not.toBeNull();
  expect([get.headers.get("etag"), head.status, await head.text()]).toEqual([null, 200, ""]);
  for (const name of ["content-length", "content-type"])
    expect(head.headers.get(name)).toBe(get.headers.get(name));
  const missing = await app.fetch("/nowhere");
  expect(missing.headers.get("vary")).toMatch(/Accept/);
});
