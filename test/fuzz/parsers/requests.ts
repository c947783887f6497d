import assert from "node:assert/strict";
import { isIP } from "node:net";
import fc from "fast-check";
import { adoptRequestId } from "../../../src/app/runtime/scope.ts";
import { FrameworkError } from "../../../src/base/errors/errors.ts";
import { createRandomDigits, incomingSpan, RunTrace } from "../../../src/base/request/trace.ts";
import { clientAddress } from "../../../src/hosts/container-http/client-address.ts";
import { splitTarget } from "../../../src/hosts/container-http/request-head.ts";
import { errorResponse } from "../../../src/parts/http/error-response.ts";
import { parseForm } from "../../../src/parts/http/input.ts";
import { parseCookies } from "../../../src/parts/http/request-cookies.ts";
import { parseRoute } from "../../../src/parts/http/route.ts";
import { createRouteTable } from "../../../src/parts/http/route-table.ts";
import { damagedText, oddText } from "../mutations.ts";
import { outcomeOf, parser } from "../parser.ts";

const hex = (length: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`));
const traceparent = fc
  .tuple(fc.constantFrom("00", "01", "cc"), hex(32), hex(16), fc.constantFrom("00", "01", "03"))
  .map((parts) => parts.join("-"));
const member = fc.constantFrom(
  "congo=t61rcWkgMzE",
  "rojo=00f067aa0ba902b7",
  "a@b=c",
  "0=~",
  "k= v",
);
const tracestate = fc.array(member, { maxLength: 40 }).map((members) => members.join(", "));
const xRay = fc
  .tuple(hex(8), hex(24), hex(16), fc.constantFrom("0", "1", "?"))
  .map(([time, id, parent, sampled]) => `Root=1-${time}-${id};Parent=${parent};Sampled=${sampled}`);
const optional = (text: fc.Arbitrary<string>) => fc.option(damagedText(text), { nil: undefined });

const digits = createRandomDigits();

const traceContext = parser({
  name: "trace-context",
  reads: "`traceparent`, `tracestate` and `x-amzn-trace-id` of requests and messages",
  inputs: fc.record({
    traceparent: optional(traceparent),
    tracestate: optional(tracestate),
    "x-amzn-trace-id": optional(xRay),
  }),
  holds: (headers) => {
    const span = incomingSpan(headers);
    if (span === undefined) return;
    assert.match(span.traceId, /^(?!0{32})[\da-f]{32}$/);
    assert.match(span.spanId ?? "1".padStart(16, "0"), /^(?!0{16})[\da-f]{16}$/);
    assert.ok((span.state ?? "").length <= 512);
    const sent = new RunTrace(digits, span).headers();
    assert.doesNotMatch(`${sent.traceparent}${sent.tracestate ?? ""}`, /[^ -~]/);
    const { traceId, sampled, state } = span;
    const again = incomingSpan({ ...sent });
    assert.deepEqual(
      { ...again, spanId: undefined },
      { traceId, sampled, state, spanId: undefined },
    );
  },
});

const requestId = parser({
  name: "request-id",
  reads: "`X-Request-ID`",
  inputs: damagedText(fc.constantFrom("r1", "0197-a:b/c=d+e@f_g.h", "a".repeat(128))),
  holds: (header) => {
    const { requestId, rejectedLength } = adoptRequestId(header, () => "new");
    assert.match(requestId, /^[A-Za-z0-9._:=+/@-]{1,128}$/);
    assert.equal(requestId, rejectedLength === undefined ? header : "new");
  },
});

const addresses = fc.array(
  fc.constantFrom(
    "192.0.2.1",
    "192.0.2.1:443",
    "[2001:db8::1]:443",
    "2001:db8::1",
    "::ffff:1.2.3.4",
    "fe80::1%eth0",
  ),
  { minLength: 1, maxLength: 4 },
);

const forwardedFor = parser({
  name: "forwarded-for",
  reads: "`X-Forwarded-For` behind trusted proxies",
  inputs: fc.record({
    header: damagedText(addresses.map((all) => all.join(", "))),
    trusted: fc.nat(5),
  }),
  holds: ({ header, trusted }) => {
    const address = clientAddress("192.0.2.9", header, trusted);
    assert.ok(isIP(String(address)) > 0, `not an address: ${address}`);
    if (trusted === 0) assert.equal(address, "192.0.2.9");
    // The list that a proxy would write with this address gives it again.
    assert.equal(clientAddress("192.0.2.9", String(address), 1), address);
  },
});

const pair = fc
  .tuple(oddText, oddText)
  .filter((parts) => parts.every((part) => part.isWellFormed()));
const queries = fc
  .array(pair, { maxLength: 6 })
  .map((pairs) => pairs.map((parts) => parts.map(encodeURIComponent).join("=")).join("&"));

const queryString = parser({
  name: "query-string",
  reads: "query strings, and bodies of forms",
  inputs: fc.oneof(
    damagedText(queries),
    fc.constantFrom(999, 1_000, 1_001, 5_000).map((count) => "a&".repeat(count)),
  ),
  holds: async (text) => {
    const parse = () => parseForm(text, "query");
    const { value } = await outcomeOf(parse, { errors: [FrameworkError] });
    if (value === undefined) return;
    assert.equal(Object.getPrototypeOf(value), null);
    const pairs = Object.entries(value).flatMap(([name, all]) =>
      [all].flat().map((one) => [name, one]),
    );
    assert.ok(pairs.length <= 1_000);
    if (!text.isWellFormed()) return; // only an event of Lambda can have half a surrogate
    const written = pairs.map((parts) =>
      parts.map((part) => encodeURIComponent(String(part))).join("="),
    );
    assert.deepEqual({ ...parseForm(written.join("&"), "query") }, { ...value });
  },
});

const routes = ["GET /things/:id", "GET /things/new", "POST /things", "GET /a/:b/c/:d"].map(
  (route) => ({
    route: parseRoute(route) as Exclude<ReturnType<typeof parseRoute>, undefined>, // safe: they are routes
    target: route,
  }),
);
const table = createRouteTable(routes as never); // safe: the targets are only returned

const requestTarget = parser({
  name: "request-target",
  reads: "the target of a request line, and its path",
  inputs: fc.record({
    method: fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "PUT", "__proto__"),
    target: damagedText(
      fc.constantFrom(
        ...[
          "/things/1",
          "/things/new?a=1",
          "/a/%20/c/%C3%BC",
          "http://host/things/1?x",
          "*",
          "/things/%2e%2e",
        ],
      ),
    ),
  }),
  holds: ({ method, target }) => {
    const { path, query } = splitTarget(target);
    assert.ok(path.length + query.length <= target.length + 1);
    const match = table.match(method, path);
    if (match.kind !== "found") return;
    assert.equal(Object.getPrototypeOf(match.params), null);
    for (const value of Object.values(match.params)) {
      assert.ok(!["", ".", ".."].includes(value), `a segment of dots or nothing: ${path}`);
      assert.ok(path.includes("%") || path.includes(value));
    }
  },
});

const cookie = fc.constantFrom(
  "a=b",
  "session=%7B%22a%22%3A1%7D",
  'q="x y"',
  "__proto__=1",
  "e=",
  "=v",
  "n",
);

const cookies = parser({
  name: "cookies",
  reads: "`Cookie`",
  inputs: fc.oneof(
    damagedText(fc.array(cookie, { maxLength: 5 }).map((all) => all.join("; "))),
    fc
      .constantFrom(100, 101, 3_000)
      .map((count) => Array.from({ length: count }, (_, at) => `c${at}=1`).join(";")),
  ),
  holds: (header) => {
    const parsed = parseCookies(header);
    assert.equal(Object.getPrototypeOf(parsed), null);
    assert.ok(Object.keys(parsed).length <= 100);
    const entries = Object.entries(parsed);
    for (const [name, value] of entries)
      assert.ok(header.includes(name) && value.length <= header.length);
    const written = entries
      .filter(([, value]) => value.isWellFormed())
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    assert.deepEqual(
      { ...parseCookies(written.join("; ")) },
      Object.fromEntries(entries.filter(([, value]) => value.isWellFormed())),
    );
  },
});

const accept = parser({
  name: "accept",
  reads: "`Accept` of a request that is refused",
  inputs: damagedText(
    fc.constantFrom(
      "application/problem+json",
      "text/html;q=0.9, */*;q=0.1",
      "application/json;q=0, a/b;q=1.000",
    ),
  ),
  holds: (header) => {
    const facts = {
      requestId: "r1",
      environment: "production",
      accept: header,
      head: false,
    } as const;
    const { response } = errorResponse(new FrameworkError("malformed_request", "no"), facts);
    const { status, headers, body } = response;
    assert.equal(status, 400);
    assert.match(String(headers["content-type"]), /^application\/(?:problem\+)?json/);
    assert.ok(String(body).length < 500);
  },
});

export const requestParsers = [
  traceContext,
  requestId,
  forwardedFor,
  queryString,
  requestTarget,
  cookies,
  accept,
];
