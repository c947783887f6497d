import type middy from "@middy/core";
import httpContentNegotiation from "@middy/http-content-negotiation";
import httpCors from "@middy/http-cors";
import httpErrorHandler from "@middy/http-error-handler";
import httpEventNormalizer from "@middy/http-event-normalizer";
import httpHeaderNormalizer from "@middy/http-header-normalizer";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import httpMultipartBodyParser from "@middy/http-multipart-body-parser";
import httpSecurityHeaders from "@middy/http-security-headers";
import httpUrlencodeBodyParser from "@middy/http-urlencode-body-parser";
import inputOutputLogger from "@middy/input-output-logger";
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { ConflictError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HttpApiEvent, HttpApiResult } from "./api-gateway.ts";
import { type LambdaHttpHandler, lambdaHandler } from "./http-handler.ts";

const orders = defineFeature("orders", (r) => {
  r.write("order.create", {
    route: "POST /orders",
    access: access.everyone,
    input: z.object({ item: z.string() }),
    handler: async (_ctx, { item }) => {
      if (item === "taken") throw new ConflictError("taken");
      return reply({ item }, { status: 201 });
    },
  });
});

/** The stacks that Middy's own documentation shows for HTTP, here around a handler of keelson's. */
// Safe: each of Middy's middlewares has a type of its own for the event.
const stacks: [string, () => unknown[]][] = [
  ["a body parser and an error handler", () => [httpJsonBodyParser(), httpErrorHandler()]],
  ["normalizers", () => [httpEventNormalizer(), httpHeaderNormalizer()]],
  [
    "a header normalizer before a body parser",
    () => [httpHeaderNormalizer(), httpJsonBodyParser()],
  ],
  [
    "CORS and security headers",
    () => [httpCors({ origins: ["https://a.example"] }), httpSecurityHeaders()],
  ],
  [
    "all of them",
    () => [
      inputOutputLogger({ logger: () => undefined }),
      httpEventNormalizer(),
      httpHeaderNormalizer(),
      httpContentNegotiation({ availableLanguages: ["en"] }),
      httpJsonBodyParser(),
      httpSecurityHeaders(),
      httpCors({ origins: ["https://a.example"] }),
      httpErrorHandler(),
    ],
  ],
];

afterEach(() => {
  vi.restoreAllMocks();
});

const event = (body: string, headers: Record<string, string> = {}): HttpApiEvent =>
  ({
    version: "2.0",
    rawPath: "/orders",
    rawQueryString: "",
    headers: {
      "Content-Type": "application/json",
      Origin: "https://a.example",
      "X-Request-ID": "r1",
      ...headers,
    },
    requestContext: { http: { method: "POST", sourceIp: "127.0.0.1" }, stage: "$default" },
    body,
    isBase64Encoded: false,
  }) as unknown as HttpApiEvent; // the parts of the event that are read

test.each(stacks)(
  "with %s, a keelson handler answers as it does without",
  async (_name, middlewares) => {
    vi.spyOn(process.stdout, "write").mockImplementation(() => true);
    const server = buildServer({ features: [orders] });
    const bare = lambdaHandler(server, "orders.order.create");
    const wrapped = lambdaHandler(server, "orders.order.create").use(
      middlewares() as middy.MiddlewareObj[],
    );
    for (const body of ['{ "item": "a" }', '{"item":"taken"}', '{"item":7}', '{"item":"ünï✓"}']) {
      const [expected, given] = [await answerOf(bare, body), await answerOf(wrapped, body)];
      expect(given).toEqual(expected);
    }
  },
);

test("responses have the headers that middlewares set", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const handler = lambdaHandler(buildServer({ features: [orders] }), "orders.order.create").use([
    httpSecurityHeaders(),
    httpCors({ origins: ["https://a.example"] }),
  ]);
  const { headers = {} } = (await handler(event('{"item":"a"}'), {} as never)) as HttpApiResult;
  const names = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  expect(names).toMatchObject({
    "access-control-allow-origin": "https://a.example",
    "x-content-type-options": "nosniff",
    "x-request-id": "r1",
  });
});

test("refuses a number or a circular object that a middleware sets as the body", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  for (const body of [circle, 7]) {
    const handler = lambdaHandler(
      buildServer({ features: [orders] }),
      "orders.order.create",
    ).before((request) => {
      request.event = { ...request.event, body: body as never };
    });
    expect(await answerOf(handler, "{}")).toMatchObject({
      status: 400,
      body: { error: "malformed_request" },
    });
  }
});

test("keeps the status of an error of Middy's own middlewares from 400 to 499, in the uniform body", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const handler = lambdaHandler(buildServer({ features: [orders] }), "orders.order.create").use(
    httpJsonBodyParser() as middy.MiddlewareObj,
  );
  expect(await answerOf(handler, "{")).toMatchObject({
    status: 422,
    body: { error: "pipeline_error", requestId: "r1" },
  });
  const typed = (await handler(
    event("{}", { "Content-Type": "text/csv" }),
    {} as never,
  )) as HttpApiResult;
  expect(typed.statusCode).toBe(415);
});

test("ignores the statusCode of a handler's error, with middlewares and without", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const failing = defineFeature("failing", (r) => {
    const failsAs = (statusCode: number) => async () => {
      throw Object.assign(new Error("s3cret of another service"), { statusCode });
    };
    r.write("thing.do", { route: "POST /orders", access: access.everyone, handler: failsAs(404) });
  });
  const server = buildServer({ features: [failing] });
  const handlers = [
    lambdaHandler(server, "failing.thing.do"),
    lambdaHandler(server, "failing.thing.do").before(() => undefined),
  ];
  for (const handler of handlers) expect((await answerOf(handler, "{}")).status).toBe(500);
});

test("logs a middleware's typed error even when Middy's error handler answers it", async () => {
  const write = vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const handler = lambdaHandler(buildServer({ features: [orders] }), "orders.order.create")
    .use(httpErrorHandler({ logger: false }) as middy.MiddlewareObj)
    .before(() => {
      throw new ConflictError("taken");
    });
  expect(await handler(event("{}"), {} as never)).toMatchObject({
    statusCode: 409,
    body: "Conflict: taken",
  });

  const lines = write.mock.calls.map(
    ([line]) => JSON.parse(String(line)) as Record<string, unknown>,
  );
  expect(lines.filter(({ msg }) => msg === "request.failed")).toEqual([
    expect.objectContaining({ level: "warn", error: "taken", status: 409, requestId: "r1" }),
  ]);
});

const boundary = "frontier";
const multipart = [
  `--${boundary}\r\nContent-Disposition: form-data; name="item"\r\n\r\na b`,
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello`,
  `--${boundary}--\r\n`,
].join("\r\n");
const forms = defineFeature("forms", (r) => {
  r.write("order.create", {
    route: "POST /orders",
    access: access.everyone,
    body: "form",
    handler: async (ctx, input) => {
      const { file, ...fields } = input as { file?: { filename: string; content: Uint8Array } };
      const text =
        file === undefined
          ? undefined
          : `${file.filename}: ${Buffer.from(file.content).toString()}`;
      return reply({ fields, text, raw: ctx.request?.rawBody.byteLength });
    },
  });
});

test.each([
  [
    "a form",
    httpUrlencodeBodyParser,
    "application/x-www-form-urlencoded; charset=utf-8",
    "item=a+b&tag=x&tag=%C3%BC",
    { fields: { item: "a b", tag: ["x", "ü"] } },
  ],
  [
    "a form with files",
    httpMultipartBodyParser,
    `multipart/form-data; boundary=${boundary}`,
    multipart,
    { fields: { item: "a b" }, text: "a.txt: hello" },
  ],
])(
  "%s parsed by a middleware is the input of a route that takes forms",
  async (_what, parser, type, body, expected) => {
    vi.spyOn(process.stdout, "write").mockImplementation(() => true);
    const of = (limits: { bodyBytes?: number }) =>
      lambdaHandler(buildServer({ features: [forms], limits }), "forms.order.create").use(
        parser() as middy.MiddlewareObj,
      );
    const given = event(body, { "Content-Type": type });
    const result = (await of({})(given, {} as never)) as HttpApiResult;
    expect([result.statusCode, JSON.parse(result.body ?? "")]).toEqual([
      200,
      { ...expected, raw: 0 },
    ]);
    const limited = (await of({ bodyBytes: 8 })(
      event(body, { "Content-Type": type }),
      {} as never,
    )) as HttpApiResult;
    expect(limited.statusCode).toBe(413);
  },
);

test("a route that takes forms refuses a body that cannot be a form", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const circle: Record<string, unknown> = { list: [null, 7] };
  circle["self"] = circle;
  const answered = async (body: unknown, headers: Record<string, string>) => {
    const handler = lambdaHandler(buildServer({ features: [forms] }), "forms.order.create").before(
      (request) => {
        request.event = { ...request.event, body: body as never };
      },
    );
    return ((await handler(event("", headers), {} as never)) as HttpApiResult).statusCode;
  };
  const type = { "Content-Type": "application/x-www-form-urlencoded" };
  expect(await answered(circle, type)).toBe(400);
  expect(await answered({ item: "a" }, { "Content-Type": "application/json" })).toBe(415);
  expect(await answered({ item: "a" }, { "Content-Type": undefined as never })).toBe(415);
  expect(await answered("item=a", type)).toBe(200);
});

async function answerOf(handler: LambdaHttpHandler, body: string) {
  const result = (await handler(event(body), {} as never)) as HttpApiResult;
  return {
    status: result.statusCode,
    body: JSON.parse(result.body ?? "null"),
    requestId: result.headers?.["x-request-id"],
  };
}
