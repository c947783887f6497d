import { expect, test } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server } from "../../app/server/server.ts";
import { NotFoundError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { currentContext } from "../../base/request/ambient.ts";
import { reply } from "../../parts/http/reply.ts";
import type { HttpApiEvent, HttpApiResult } from "./api-gateway.ts";
import { type LambdaHttpHandler, lambdaHandler, lambdaHttp } from "./http-handler.ts";

const parts = defineFeature("parts", (r) => {
  const show = r.query("part.show", {
    route: "GET /parts/:id",
    access: access.everyone,
    handler: async (ctx, input) => ({
      input,
      requestId: ctx.requestId,
      ambient: currentContext()?.requestId,
      user: ctx.user,
    }),
  });
  r.query("part.who", {
    route: "GET /who",
    access: access.authenticated,
    handler: async (ctx) => ctx.user,
  });
  r.query("part.request", {
    route: "GET /request",
    access: access.everyone,
    handler: async (ctx) => ({ ...ctx.request, signal: "signal" in ctx }),
  });
  r.query("part.missing", {
    route: "GET /missing",
    access: access.everyone,
    handler: async () => {
      throw new NotFoundError("part", "7");
    },
  });
  r.query("part.bytes", {
    route: "GET /bytes",
    access: access.everyone,
    handler: async () =>
      reply(new Uint8Array([0, 255]), { headers: { "content-type": "application/octet-stream" } }),
  });
  r.query("part.stream", {
    route: "GET /stream",
    access: access.everyone,
    handler: async () =>
      reply(new Response("streamed").body, { headers: { "content-type": "text/plain" } }),
  });
  r.write("part.create", {
    route: "POST /parts",
    access: access.everyone,
    handler: async (_ctx, input) =>
      reply(input, { status: 201, cookies: { seen: { value: "1" } } }),
  });
  r.write("part.internal", { handler: async () => 1 });
  return { show };
});

const build = (options: Partial<Parameters<typeof buildServer>[0]> = {}): Server =>
  buildServer({ features: [parts], log: { level: "error" }, ...options });

test("every response carries the request ID that the client sent", async () => {
  const http = lambdaHttp(build());

  for (const path of ["/parts/1", "/missing", "/nowhere"]) {
    const { headers } = await invoke(
      http,
      event("GET", path, { headers: { "X-Request-ID": "mine" } }),
    );
    expect(headers?.["x-request-id"]).toBe("mine");
  }
});

test("a handler gets its own ctx, and the ambient context has the same request ID", async () => {
  const { statusCode, body } = await invoke(
    lambdaHttp(build()),
    event("GET", "/parts/a b", { rawQueryString: "q=1", headers: { "x-request-id": "r1" } }),
  );

  expect(statusCode).toBe(200);
  expect(JSON.parse(body ?? "")).toEqual({
    input: { id: "a b", q: "1" },
    requestId: "r1",
    ambient: "r1",
    user: { roles: [], kind: "user" },
  });
});

test("a typed error becomes the uniform response", async () => {
  const { statusCode, body } = await invoke(
    lambdaHttp(build()),
    event("GET", "/missing", { headers: { "x-request-id": "r1" } }),
  );

  expect(statusCode).toBe(404);
  expect(JSON.parse(body ?? "")).toMatchObject({
    error: "not_found",
    message: "part 7 not found",
    requestId: "r1",
  });
});

test.each([
  ["its handle", () => parts.show],
  ["its name", () => "parts.part.show"],
])(
  "a function of one handler, given by %s, answers its own route and no other",
  async (_, given) => {
    const show = lambdaHandler(build(), given());

    expect((await invoke(show, event("GET", "/parts/1"))).statusCode).toBe(200);
    expect((await invoke(show, event("GET", "/missing"))).statusCode).toBe(404);
    expect((await invoke(show, event("DELETE", "/parts/1"))).statusCode).toBe(405);
  },
);

test("refuses to create a function for a handler that does not exist or has no route", () => {
  expect(() => lambdaHandler(build(), "parts.part.none")).toThrow(
    /not a handler with a route; the server has parts\.part\.show/,
  );
  expect(() => lambdaHandler(build(), "parts.part.internal")).toThrow(/not a handler with a route/);
  const strange = { kind: "query", name: "other.thing.show" } as const;
  expect(() => lambdaHandler(build(), strange)).toThrow(
    "lambdaHandler: other.thing.show is not a handler with a route",
  );
  expect(() => lambdaHandler(buildServer({ features: [] }), "x.y.z")).toThrow(
    /the server has none/,
  );
});

test("refuses a handler given to Middy, since it would never run", () => {
  const http = lambdaHttp(build()).use({ before: () => undefined });
  const one = lambdaHandler(build(), "parts.part.show");

  for (const handler of [http, one]) {
    const untyped = handler as unknown as { handler(replacement: unknown): unknown }; // of what has no types
    expect(() => untyped.handler(async () => ({ statusCode: 200 }))).toThrow(
      /^\.handler\(\): the handlers of the server answer, and this one would never run; declare it with r\.query or r\.write/,
    );
  }
});

test("removes a stage other than $default from the path", async () => {
  const http = lambdaHttp(build());

  expect((await invoke(http, event("GET", "/dev/parts/1", { stage: "dev" }))).statusCode).toBe(200);
  expect((await invoke(http, event("GET", "/parts/1", { stage: "dev" }))).statusCode).toBe(200);
  expect((await invoke(http, event("GET", "/developers", { stage: "dev" }))).statusCode).toBe(404);
});

test("takes the caller from claims that the gateway's JWT authorizer verified, with roles as a string", async () => {
  const authorizer = {
    jwt: { claims: { sub: "ann", tenantId: "acme", roles: "[admin user]" }, scopes: [] },
  };
  const { body } = await invoke(lambdaHttp(build()), event("GET", "/who", { authorizer }));

  expect(JSON.parse(body ?? "")).toMatchObject({
    id: "ann",
    tenantId: "acme",
    roles: ["admin", "user"],
  });
});

test("accepts claims of a Lambda authorizer, but never headers that claim an identity", async () => {
  const http = lambdaHttp(build());
  const authorizer = { lambda: { sub: "bob", tenantId: "globex" } };

  expect(
    JSON.parse((await invoke(http, event("GET", "/who", { authorizer }))).body ?? ""),
  ).toMatchObject({ id: "bob" });
  const forged = await invoke(
    http,
    event("GET", "/who", { headers: { "x-user-id": "ann", "x-tenant-id": "acme" } }),
  );
  expect(forged.statusCode).toBe(401);
});

test("reads a body as text or base64, and answers 413 over the limit", async () => {
  const http = lambdaHttp(build({ limits: { bodyBytes: 20 } }));
  const headers = { "content-type": "application/json" };
  const plain = await invoke(http, event("POST", "/parts", { headers, body: '{"a":1}' }));
  const encoded = await invoke(
    http,
    event("POST", "/parts", { headers, body: btoa('{"a":2}'), isBase64Encoded: true }),
  );
  const large = await invoke(
    http,
    event("POST", "/parts", { headers, body: JSON.stringify({ a: "x".repeat(20) }) }),
  );

  expect(JSON.parse(plain.body ?? "")).toEqual({ a: 1 });
  expect(JSON.parse(encoded.body ?? "")).toEqual({ a: 2 });
  expect(large.statusCode).toBe(413);
});

test("sends cookies one by one, and bytes and streams as base64", async () => {
  const http = lambdaHttp(build());
  const created = await invoke(
    http,
    event("POST", "/parts", { headers: { "content-type": "application/json" }, body: "{}" }),
  );
  const bytes = await invoke(http, event("GET", "/bytes"));
  const stream = await invoke(http, event("GET", "/stream"));

  expect(created.statusCode).toBe(201);
  expect(created.cookies).toEqual([expect.stringMatching(/^seen=1;/)]);
  expect(bytes).toMatchObject({
    isBase64Encoded: true,
    body: Buffer.from([0, 255]).toString("base64"),
  });
  expect(Buffer.from(stream.body ?? "", "base64").toString()).toBe("streamed");
});

test("ctx.request has lower-case headers and cookies, but no signal", async () => {
  const { body } = await invoke(
    lambdaHttp(build()),
    event("GET", "/request", { headers: { "X-Custom": "1" }, cookies: ["a=1", "b=2"] }),
  );

  expect(JSON.parse(body ?? "")).toMatchObject({
    headers: { "x-custom": "1" },
    cookies: { a: "1", b: "2" },
    ip: "203.0.113.9",
    signal: false,
  });
});

test("fails the invocation for an event of another kind", async () => {
  await expect(lambdaHttp(build())({ Records: [] } as never, {} as never)).rejects.toThrow(
    /not of a REST API, an HTTP API, a function URL or a load balancer/,
  );
});

test("runs Middy's own middlewares around a handler, and adds the request ID to an early response", async () => {
  const order: string[] = [];
  const http = lambdaHttp(build())
    .use({ before: () => void order.push("before"), after: () => void order.push("after") })
    .before((request) => (request.event.rawPath === "/early" ? { statusCode: 418 } : undefined));
  const normal = await invoke(http, event("GET", "/parts/1"));
  const early = await invoke(http, event("GET", "/early", { headers: { "x-request-id": "r9" } }));

  expect(order).toEqual(["before", "after", "before"]);
  expect(normal.statusCode).toBe(200);
  expect(early).toMatchObject({ statusCode: 418, headers: { "x-request-id": "r9" } });
});

test("turns a bare value from a middleware into a JSON response, as the gateway does", async () => {
  const text = lambdaHttp(build()).before(() => "hello" as never);
  const object = lambdaHttp(build()).before(() => ({ a: 1 }) as never);
  const nothing = lambdaHttp(build()).after((request) => {
    request.response = undefined;
  });

  expect(await invoke(text, event("GET", "/x"))).toMatchObject({ statusCode: 200, body: "hello" });
  expect(await invoke(object, event("GET", "/x"))).toMatchObject({
    statusCode: 200,
    body: '{"a":1}',
  });
  expect((await invoke(nothing, event("GET", "/parts/1"))).statusCode).toBe(200);
});

test("turns a middleware's error into the uniform response", async () => {
  const http = lambdaHttp(build()).before(() => {
    throw new NotFoundError("tenant", "x");
  });

  expect(JSON.parse((await invoke(http, event("GET", "/parts/1"))).body ?? "")).toMatchObject({
    error: "not_found",
  });
});

test("accepts an event with required members only, and reads the bare stage path as the root", async () => {
  const bare = {
    version: "2.0",
    rawPath: "/dev",
    requestContext: { stage: "dev", http: { method: "GET" } },
  };
  const pathless = { version: "2.0", requestContext: { http: { method: "GET" } } };
  const stageless = {
    version: "2.0",
    rawPath: "/parts/1",
    requestContext: { http: { method: "HEAD" } },
  };

  expect((await invoke(lambdaHttp(build()), bare as never)).statusCode).toBe(404);
  expect((await invoke(lambdaHttp(build()), pathless as never)).statusCode).toBe(404);
  expect(await invoke(lambdaHttp(build()), stageless as never)).toMatchObject({
    statusCode: 200,
    headers: { "content-length": expect.any(String) },
  });
  const post = {
    version: "2.0",
    rawPath: "/parts",
    headers: { "x-none": undefined },
    requestContext: { http: { method: "POST" }, authorizer: { lambda: "text" } },
  };
  expect((await invoke(lambdaHttp(build()), post as never)).statusCode).toBe(201);
});

test("a HEAD request that fails gets no body", async () => {
  const { statusCode, body } = await invoke(lambdaHttp(build()), event("HEAD", "/missing"));

  expect([statusCode, body]).toEqual([404, undefined]);
});

test("accepts an early response with only a status and a header that is a number", async () => {
  const http = lambdaHttp(build()).before(() => ({ statusCode: 200, headers: { "X-Count": 1 } }));

  expect(await invoke(http, event("GET", "/x"))).toMatchObject({
    statusCode: 200,
    headers: { "x-count": "1" },
  });
});

test("keeps concurrent invocations in one environment apart", async () => {
  const http = lambdaHttp(build());
  const ids = Array.from({ length: 200 }, (_, index) => `request-${index}`);
  const answers = await Promise.all(
    ids.map((id) => invoke(http, event("GET", "/parts/1", { headers: { "x-request-id": id } }))),
  );

  expect(answers.map(({ body }) => JSON.parse(body ?? "").ambient)).toEqual(ids);
});

interface EventOptions {
  headers?: Record<string, string>;
  body?: string;
  isBase64Encoded?: boolean;
  rawQueryString?: string;
  cookies?: string[];
  stage?: string;
  authorizer?: unknown;
}

function event(
  method: string,
  path: string,
  { stage = "$default", authorizer, ...options }: EventOptions = {},
): HttpApiEvent {
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "",
    headers: {},
    isBase64Encoded: false,
    ...options,
    requestContext: {
      stage,
      http: { method, path, protocol: "HTTP/1.1", sourceIp: "203.0.113.9", userAgent: "test" },
      authorizer,
    },
  } as unknown as HttpApiEvent; // the parts of the event that are read
}

async function invoke(handler: LambdaHttpHandler, input: HttpApiEvent): Promise<HttpApiResult> {
  return handler(input, { awsRequestId: "aws" } as never);
}
