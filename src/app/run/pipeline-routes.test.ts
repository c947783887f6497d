// Responses without a handler: unknown routes, methods, preflights, rejected requests.
import { expect, test } from "vitest";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { PipelineError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import type { CorsOptions } from "../../parts/http/cors-options.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

const everyone = { access: access.everyone };
const shelves = defineFeature("shelves", (r) => {
  r.query("book.show", {
    route: "GET /books/:id",
    ...everyone,
    handler: async (_ctx, input) => ({ ...(input as object) }),
  });
  r.write("book.add", {
    route: "POST /books",
    ...everyone,
    handler: async () => ({ added: true }),
  });
  r.write("book.own", { route: "POST /own", access: access.authenticated, handler: async () => 1 });
});
const serverOf = (cors?: CorsOptions) =>
  buildServer({ features: [shelves], limits: { bodyBytes: 10 }, ...(cors && { cors }) });
const { ask } = hostless(serverOf());

test("a path with malformed percent-encoding is a malformed request, not unknown", async () => {
  const { status, json } = await ask("GET /books/%zz");

  expect(status).toBe(400);
  expect(json()).toMatchObject({
    error: "malformed_request",
    message: "The path has malformed percent-encoding",
  });
});

test("names an unknown route in one line of ASCII, of at most 200 characters", async () => {
  const { status, json } = await ask(`GET /né\n${"x".repeat(300)}`);

  expect(status).toBe(404);
  expect(json()).toMatchObject({
    error: "not_found",
    message: `route /n??${"x".repeat(196)} not found`,
  });
});

test("rejects a method that a path does not have, and lists the methods it has", async () => {
  const { status, headers, json, lines } = await ask("DELETE /books/7");

  expect(status).toBe(405);
  expect(headers["allow"]).toBe("GET, HEAD, OPTIONS");
  expect(json()).toMatchObject({
    error: "method_not_allowed",
    message: "Method not allowed; allowed are GET, HEAD, OPTIONS",
  });
  expect(lines).toMatchObject([
    { msg: "request.failed", level: "warn", error: "method_not_allowed", status: 405 },
  ]);
});

test("without CORS, answers OPTIONS with only the methods of the path", async () => {
  const headers = {
    origin: "https://app.example.com",
    "access-control-request-method": "POST",
    "x-request-id": "r1",
  };
  const { scope, lines, json, ...response } = await ask("OPTIONS /books", { headers });

  expect(response).toEqual({
    status: 204,
    headers: { allow: "OPTIONS, POST", "x-request-id": "r1", "x-content-type-options": "nosniff" },
    cookies: [],
    body: undefined,
  });
});

test("answers a preflight only from an allowed origin", async () => {
  const app = hostless(serverOf({ origins: ["https://app.example.com"], maxAgeSeconds: 60 }));
  const preflight = async (headers: Record<string, string>) => {
    const answer = await app.ask("OPTIONS /books", {
      headers: { "x-request-id": "r1", ...headers },
    });
    return [answer.status, answer.headers];
  };
  const method = { "access-control-request-method": "POST" };
  const always = {
    allow: "OPTIONS, POST",
    vary: "Origin",
    "x-request-id": "r1",
    "x-content-type-options": "nosniff",
  };
  const allowed = {
    "access-control-allow-origin": "https://app.example.com",
    "access-control-expose-headers": "X-Request-ID, Idempotent-Replayed, Retry-After",
  };

  expect(await preflight({ origin: "https://app.example.com", ...method })).toEqual([
    204,
    {
      ...always,
      ...allowed,
      "access-control-allow-methods": "OPTIONS, POST",
      "access-control-allow-headers":
        "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-ID, Traceparent",
      "access-control-max-age": "60",
    },
  ]);
  expect(await preflight({ origin: "https://app.example.com" })).toEqual([
    204,
    { ...always, ...allowed },
  ]);
  expect(await preflight({ origin: "https://evil.example", ...method })).toEqual([204, always]);
});

test("rejects ambiguous headers on every route", async () => {
  const refused = async (target: string, headers: Record<string, string>) => {
    const { status, json } = await ask(target, { headers });
    return [status, (json() as { readonly message: string }).message];
  };

  expect(await refused("GET /nowhere", { host: "a.example, b.example" })).toEqual([
    400,
    'The Host header "a.example, b.example" is not one valid host',
  ]);
  expect(await refused("GET /books/7", { authorization: "Bearer a, Bearer b" })).toEqual([
    400,
    "The Authorization header has more than one credential",
  ]);
  expect((await ask("GET /books/7", { headers: { host: "a.example" } })).status).toBe(200);
});

test("answers with the host's own refusal before any other check", async () => {
  const refusal = new PipelineError("The request took too long", 408, {
    code: "malformed_request",
  });
  const headers = { host: "a.example, b.example" };
  const { status, json } = await ask("GET /nowhere", { refusal, headers });

  expect(status).toBe(408);
  expect(json()).toMatchObject({ message: "The request took too long" });
});

test("rejects a declared length above the limit first, without reading the body", async () => {
  let reads = 0;
  const send = async (target: string, length: number) => {
    const { status, json } = await ask(target, {
      headers: { "content-length": String(length) },
      readBody: () => {
        reads += 1;
        return new Uint8Array(0);
      },
    });
    return [status, status < 400 ? undefined : (json() as { readonly message: string }).message];
  };

  expect(await send("POST /own", 11)).toEqual([413, "The body exceeds 10 bytes"]);
  expect(await send("POST /own", 10)).toEqual([401, "authentication is not configured"]);
  expect(reads).toBe(0);
  expect(await send("POST /books", 10)).toEqual([200, undefined]);
  expect(reads).toBe(1);
});

test("names the handler and its route once they are known", async () => {
  const { scope } = await ask("GET /books/7");
  expect(scope).toMatchObject({ handler: "shelves.book.show", route: "GET /books/:id" });
  expect(scope.asked).toMatchObject({ method: "GET", path: "/books/7" });

  const { scope: unknown } = await ask("GET /nowhere");
  expect(unknown.handler).toBeUndefined();
  expect(unknown.asked).toMatchObject({ path: "/nowhere" });
});
