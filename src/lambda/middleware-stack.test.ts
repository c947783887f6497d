import type middy from "@middy/core";
import httpContentNegotiation from "@middy/http-content-negotiation";
import httpCors from "@middy/http-cors";
import httpErrorHandler from "@middy/http-error-handler";
import httpEventNormalizer from "@middy/http-event-normalizer";
import httpHeaderNormalizer from "@middy/http-header-normalizer";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import httpSecurityHeaders from "@middy/http-security-headers";
import inputOutputLogger from "@middy/input-output-logger";
import { afterEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../app/feature.ts";
import { buildServer } from "../app/server.ts";
import { ConflictError } from "../errors/errors.ts";
import { reply } from "../http/reply.ts";
import { access } from "../identity/access.ts";
import type { HttpApiEvent, HttpApiResult } from "./http-api.ts";
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
  ["a header normalizer before a body parser", () => [httpHeaderNormalizer(), httpJsonBodyParser()]],
  ["CORS and security headers", () => [httpCors({ origins: ["https://a.example"] }), httpSecurityHeaders()]],
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
    headers: { "Content-Type": "application/json", Origin: "https://a.example", "X-Request-ID": "r1", ...headers },
    requestContext: { http: { method: "POST", sourceIp: "127.0.0.1" }, stage: "$default" },
    body,
    isBase64Encoded: false,
  }) as unknown as HttpApiEvent; // the parts of the event that are read

test.each(stacks)("%s around a handler of keelson's: it answers as it does without", async (_name, middlewares) => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const server = buildServer({ features: [orders] });
  const bare = lambdaHandler(server, "orders.order.create");
  const wrapped = lambdaHandler(server, "orders.order.create").use(middlewares() as middy.MiddlewareObj[]);
  for (const body of ['{ "item": "a" }', '{"item":"taken"}', '{"item":7}', '{"item":"ünï✓"}']) {
    const [expected, given] = [await answerOf(bare, body), await answerOf(wrapped, body)];
    expect(given).toEqual(expected);
  }
});

test("headers that the middlewares set are on answers and errors", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const handler = lambdaHandler(buildServer({ features: [orders] }), "orders.order.create").use([
    httpSecurityHeaders(),
    httpCors({ origins: ["https://a.example"] }),
  ]);
  const { headers = {} } = (await handler(event('{"item":"a"}'), {} as never)) as HttpApiResult;
  const names = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  expect(names).toMatchObject({
    "access-control-allow-origin": "https://a.example",
    "x-content-type-options": "nosniff",
    "x-request-id": "r1",
  });
});

test("a body that a middleware makes of what JSON does not have is refused", async () => {
  vi.spyOn(process.stdout, "write").mockImplementation(() => true);
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  for (const body of [circle, 7]) {
    const handler = lambdaHandler(buildServer({ features: [orders] }), "orders.order.create").before((request) => {
      request.event = { ...request.event, body: body as never };
    });
    expect(await answerOf(handler, "{}")).toMatchObject({ status: 400, body: { error: "malformed_request" } });
  }
});

async function answerOf(handler: LambdaHttpHandler, body: string) {
  const result = (await handler(event(body), {} as never)) as HttpApiResult;
  return { status: result.statusCode, body: JSON.parse(result.body ?? "null"), requestId: result.headers?.["x-request-id"] };
}
