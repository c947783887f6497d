import fc from "fast-check";
import { lambdaHttp } from "keelson/lambda";
import { startTestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { codePoint } from "../support/code-point.ts";
import { runs } from "../support/runs.ts";
import { hostileServer, wrongWith } from "./server.ts";

let call: (event: unknown) => Promise<{
  statusCode: number;
  headers?: Record<string, unknown>;
  multiValueHeaders?: Record<string, unknown>;
  body?: string;
}>;
let close: () => Promise<void>;

beforeAll(async () => {
  const app = await startTestApp(hostileServer());
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const handler = lambdaHttp(hostileServer());
  call = (event) =>
    handler(event as never, { getRemainingTimeInMillis: () => 30_000 } as never) as never;
  close = app.close;
});
afterAll(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await close();
});

const text = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 30 }),
  fc.constantFrom(
    "__proto__",
    "constructor",
    "",
    "%",
    "%zz",
    "%00",
    "..",
    "/",
    "é",
    "\u0000",
    "\ud800",
  ),
);
const junk = fc.oneof(
  fc.constant(undefined),
  fc.constant(null),
  text,
  fc.integer(),
  fc.boolean(),
  fc.constant([]),
  fc.constant({}),
);
const method = fc.oneof(
  fc.constantFrom("GET", "POST", "HEAD", "OPTIONS", "PUT", "TRACE", "CONNECT", "get"),
  text,
);
const path = fc.oneof(
  fc.constantFrom("/things", "/things/1", "/forms", "/secrets", "/health/ready", "/config", "/log"),
  text.map((part) => `/things/${part}`),
  text,
);
const name = fc.oneof(
  fc.constantFrom(
    "content-type",
    "Content-Type",
    "authorization",
    "Host",
    "host",
    "cookie",
    "x-request-id",
    "idempotency-key",
    "accept",
    "content-encoding",
    "origin",
    "traceparent",
  ),
  text,
);
const value = fc.oneof(
  fc.constantFrom(
    "application/json",
    "application/json; charset=latin1",
    "application/x-www-form-urlencoded",
    "Bearer x.y.z",
    "Bearer",
    "Bearer x, Bearer y",
    "localhost:3000",
    "a, b",
    "application/problem+json",
    "gzip",
  ),
  text,
);
const dictionary = fc.oneof(fc.dictionary(name, value, { maxKeys: 5 }), junk);
const lists = fc.oneof(
  fc.dictionary(name, fc.oneof(fc.array(value, { maxLength: 3 }), junk), { maxKeys: 4 }),
  junk,
);
const body = fc.oneof(
  fc.json(),
  text,
  fc.constantFrom(
    '{"name":"a"}',
    '{"name":"a"',
    '{"name":"a","size":1e999}',
    '{"__proto__":{"polluted":1},"name":"a"}',
    "[1]",
  ),
  junk,
);
const isBase64Encoded = fc.oneof(fc.boolean(), junk);

const httpApi = fc.record({
  version: fc.constant("2.0"),
  rawPath: fc.oneof(path, junk),
  rawQueryString: fc.oneof(
    text,
    fc.constantFrom("a=1&a=2", "__proto__=1", "a=%ff", "=".repeat(99)),
    junk,
  ),
  headers: dictionary,
  cookies: fc.oneof(fc.array(value, { maxLength: 3 }), junk),
  requestContext: fc.record({
    http: fc.record({ method, sourceIp: text }),
    stage: fc.oneof(fc.constantFrom("$default", "things"), junk),
    authorizer: junk,
    domainName: fc.oneof(
      fc.constantFrom("a.lambda-url.eu-west-1.on.aws", "offlineContext_domainName"),
      junk,
    ),
  }),
  body,
  isBase64Encoded,
});
const restApi = fc.record({
  version: fc.oneof(fc.constant("1.0"), junk),
  httpMethod: method,
  path,
  headers: dictionary,
  multiValueHeaders: lists,
  queryStringParameters: dictionary,
  multiValueQueryStringParameters: lists,
  requestContext: fc.oneof(
    fc.record({ identity: junk, stage: junk, authorizer: junk }),
    fc.constant({ elb: { targetGroupArn: "arn" } }),
  ),
  body,
  isBase64Encoded,
});

test.each([
  ["an HTTP API", httpApi],
  ["a REST API or a load balancer", restApi],
])(
  "no content of an event of %s causes a 500, and every error names the problem",
  async (_shape, events) => {
    await fc.assert(
      fc.asyncProperty(events, async (event) => {
        const {
          statusCode,
          headers = {},
          multiValueHeaders = {},
          body: answered = "",
        } = await call(event);
        const isHead = JSON.stringify(event).includes('"HEAD"');
        expect(
          answered === "" && isHead ? undefined : wrongWith(statusCode, answered),
        ).toBeUndefined();
        expect(headers["x-request-id"] ?? multiValueHeaders["x-request-id"]).toBeDefined();
        expect("polluted" in {}).toBe(false);
      }),
      { numRuns: runs(1_500) },
    );
  },
);

test("anything but an HTTP event is rejected", async () => {
  const other = fc.oneof(
    fc.anything(),
    fc.record({ Records: fc.array(fc.anything(), { maxLength: 2 }) }),
    fc.record({ version: fc.constant("2.0"), requestContext: junk }),
  );
  await fc.assert(
    fc.asyncProperty(other, async (event) => {
      await expect(call(event)).rejects.toThrow();
    }),
    { numRuns: runs(500) },
  );
});
