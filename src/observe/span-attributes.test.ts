import { expect, test } from "vitest";
import { messageAttributes, requestAttributes, requestName, routeOf } from "./span-attributes.ts";

type Facts = Parameters<typeof requestAttributes>[0];

/** A scope, in so far as its attributes are asked for. */
const scopeOf = (given: object, variables: Readonly<Record<string, string>> = {}, basePath?: string): Facts =>
  ({ headers: {}, requestId: "r1", runtime: { variables, server: { options: { basePath } } }, ...given }) as unknown as Facts; // safe: nothing else is asked for

test.each([
  ["GET", "GET /a/:id", "GET /a/:id", "GET"],
  ["GET", undefined, "GET", "GET"],
  ["PURGE", "GET /a/:id", "HTTP /a/:id", "_OTHER"],
  [undefined, undefined, "HTTP", "_OTHER"],
])("%s of %s is named as the conventions have it", (method, route, name, known) => {
  const scope = scopeOf({ route, asked: method === undefined ? undefined : { method, path: "/a/1", ip: undefined } });
  expect(requestName(method, routeOf(scope))).toBe(name);
  expect(requestAttributes(scope)["http.request.method"]).toBe(known);
});

test("texts of callers are bounded, and the query is left out", () => {
  const asked = { method: "M".repeat(100), path: `/${"p".repeat(5_000)}`, ip: "10.0.0.1" };
  const attributes = requestAttributes(scopeOf({ asked, headers: { "user-agent": "u".repeat(5_000) } }));
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
  const asked = "asked" in given ? { method: "GET", path: "/", ip: undefined, ...given.asked } : undefined;
  expect(
    requestAttributes(scopeOf({ ...given, asked, headers: "headers" in given ? given.headers : undefined }))["url.scheme"],
  ).toBe(scheme);
});

test("in Lambda they say what has called the function, and a route has the base path", () => {
  const variables = { AWS_LAMBDA_FUNCTION_NAME: "api" };
  const scope = scopeOf({ route: "GET /a", handler: "a.b.c" }, variables, "/api");
  expect(requestAttributes(scope)).toMatchObject({ "faas.trigger": "http", "http.route": "/api/a" });
  expect(messageAttributes(scope, "a.made", "e1")).toMatchObject({
    "faas.trigger": "pubsub",
    "messaging.destination.name": "a.made",
    "messaging.destination.subscription.name": "a.b.c",
    "messaging.message.id": "e1",
    "messaging.message.conversation_id": "r1",
  });
});
