import { expect, test } from "vitest";
import type { EnqueueOptions } from "../handlers/effect-options.ts";
import {
  isStored,
  messageAttributes,
  producerAttributes,
  requestAttributes,
  requestName,
  rootAttributes,
  routeOf,
} from "./span-attributes.ts";

type Facts = Parameters<typeof requestAttributes>[0];

/** A scope, in so far as its attributes are asked for. */
const scopeOf = (
  given: object,
  variables: Readonly<Record<string, string>> = {},
  basePath?: string,
): Facts =>
  ({
    headers: {},
    requestId: "r1",
    runtime: { variables, server: { options: { basePath } } },
    ...given,
  }) as unknown as Facts; // safe: nothing else is asked for

test.each([
  ["GET", "GET /a/:id", "GET /a/:id", "GET"],
  ["GET", undefined, "GET", "GET"],
  ["PURGE", "GET /a/:id", "HTTP /a/:id", "_OTHER"],
  [undefined, undefined, "HTTP", "_OTHER"],
])("%s of %s is named by the conventions", (method, route, name, known) => {
  const scope = scopeOf({
    route,
    asked: method === undefined ? undefined : { method, path: "/a/1", ip: undefined },
  });
  expect(requestName(method, routeOf(scope))).toBe(name);
  expect(requestAttributes(scope)["http.request.method"]).toBe(known);
});

test.each(["192.0.2.1", "2001:db8::ffff:1", undefined])("a client has the address %s", (ip) => {
  expect(
    requestAttributes(scopeOf({ asked: { method: "GET", path: "/", ip } }))["client.address"],
  ).toBe(ip);
});

test("bounds texts of callers and leaves out the query", () => {
  const asked = { method: "M".repeat(100), path: `/${"p".repeat(5_000)}`, ip: "10.0.0.1" };
  const attributes = requestAttributes(
    scopeOf({ asked, headers: { "user-agent": "u".repeat(5_000) } }),
  );
  const lengths = ["http.request.method_original", "url.path", "user_agent.original"].map(
    (name) => String(attributes[name]).length,
  );
  expect(lengths).toEqual([32, 1_024, 256]);
  expect(attributes).not.toHaveProperty("url.query");
});

test.each([
  [{ asked: { isEncrypted: false } }, "http"],
  [{ asked: { isEncrypted: true } }, "https"],
  [{ asked: {} }, "https"],
  [{}, "https"],
  [{ asked: { isEncrypted: true }, headers: { "x-forwarded-proto": "http" } }, "http"],
  [{ asked: { isEncrypted: false }, headers: { "x-forwarded-proto": "https" } }, "https"],
  [{ asked: { isEncrypted: false }, headers: { "x-forwarded-proto": "gopher" } }, "http"],
])("the scheme of %j is %s", (given, scheme) => {
  const asked =
    "asked" in given ? { method: "GET", path: "/", ip: undefined, ...given.asked } : undefined;
  expect(
    requestAttributes(
      scopeOf({ ...given, asked, headers: "headers" in given ? given.headers : undefined }),
    )["url.scheme"],
  ).toBe(scheme);
});

test.each([
  ["shop.example", "http", "shop.example", 80],
  ["shop.example", "https", "shop.example", 443],
  ["shop.example:3000", "https", "shop.example", 3_000],
  ["[::1]:3000", "http", "::1", 3_000],
  ["10.0.0.1", "http", "10.0.0.1", 80],
  ["a b", "http", undefined, undefined],
  ["h".repeat(300), "http", undefined, undefined],
  [undefined, "http", undefined, undefined],
])("the host %s over %s has the address %s and the port %s", (host, scheme, address, port) => {
  const headers = { "x-forwarded-proto": scheme, ...(host !== undefined && { host }) };
  const attributes = requestAttributes(
    scopeOf({ headers, asked: { method: "GET", path: "/", ip: undefined } }),
  );
  expect([attributes["server.address"], attributes["server.port"]]).toEqual([address, port]);
});

test.each([
  ["a root without a span", undefined, "Root=1-a", ["Root=1-a"]],
  ["a root of the invocation", undefined, undefined, undefined],
  ["a span", "00f067aa0ba902b7", "Root=1-a", undefined],
])(
  "keeps the header of a trace that began with %s if a tracer cannot join it",
  (_, spanId, header, kept) => {
    const origin = {
      traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
      spanId,
      sampled: false,
      state: undefined,
    };
    const scope = scopeOf({
      headers: header === undefined ? undefined : { "x-amzn-trace-id": header },
    });
    expect(rootAttributes(scope, undefined, origin)["http.request.header.x-amzn-trace-id"]).toEqual(
      kept,
    );
  },
);

test("a message stored first is created, and one sent at once is sent", () => {
  expect(
    producerAttributes(scopeOf({}), "enqueue", "a.b.c", true)["messaging.operation.type"],
  ).toBe("create");
  expect(
    producerAttributes(scopeOf({}), "enqueue", "a.b.c", false)["messaging.operation.type"],
  ).toBe("send");
});

test.each<[EnqueueOptions | undefined, boolean]>([
  [undefined, true],
  [{}, true],
  [{ afterCommit: true }, true],
  [{ afterCommit: false }, false],
  [{ afterCommit: false, delaySeconds: 0 }, true],
  [{ afterCommit: false, at: new Date(0) }, true],
  [{ delaySeconds: 5 }, true],
])("a job with the options %j is stored first: %s", (options, isFirst) => {
  expect(isStored(options)).toBe(isFirst);
});

test("in Lambda they name the trigger, and the route includes the base path", () => {
  const variables = { AWS_LAMBDA_FUNCTION_NAME: "api" };
  const scope = scopeOf({ route: "GET /a", handler: "a.b.c" }, variables, "/api");
  expect(requestAttributes(scope)).toMatchObject({
    "faas.trigger": "http",
    "http.route": "/api/a",
  });
  expect(messageAttributes(scope, "a.made", "e1")).toMatchObject({
    "faas.trigger": "pubsub",
    "messaging.destination.name": "a.made",
    "messaging.destination.subscription.name": "a.b.c",
    "messaging.message.id": "e1",
    "messaging.message.conversation_id": "r1",
  });
});
