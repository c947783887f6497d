import { SignJWT } from "jose";
import { expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, type Server } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { currentContext } from "../../base/request/ambient.ts";
import { reply } from "../../parts/http/reply.ts";
import {
  type LambdaTrigger,
  lambdaContext,
  lambdaEvent,
} from "../../tools/testing/lambda-event.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { lambdaHandler, lambdaHttp } from "./http-handler.ts";

const large = defineFeature("large", (r) => {
  const open = { access: access.everyone } as const;
  r.query("item.show", {
    ...open,
    route: "GET /items/:id",
    handler: async (ctx, input) => {
      await new Promise((resolve) => setImmediate(resolve));
      const { requestId, tenantId } = currentContext() ?? {};
      return { input, requestId, tenantId, user: ctx.user };
    },
  });
  r.query("item.who", {
    route: "GET /who",
    access: access.authenticated,
    handler: async (ctx) => ctx.user,
  });
  r.query("item.request", { ...open, route: "GET /request", handler: async (ctx) => ctx.request });
  r.write("item.create", {
    ...open,
    route: "POST /items",
    handler: async (_ctx, input) =>
      reply(input, { status: 201, cookies: { a: { value: "1" }, b: { value: "2" } } }),
  });
  r.write("item.login", {
    ...open,
    route: "POST /login",
    handler: async () => reply(undefined, { cookies: { a: { value: "1" } } }),
  });
  r.query("item.bytes", {
    ...open,
    route: "GET /bytes",
    handler: async () =>
      reply(new Uint8Array([0, 255]), { headers: { "content-type": "application/octet-stream" } }),
  });
  r.query("item.text", {
    ...open,
    route: "GET /text/:size",
    handler: async (_ctx, input) =>
      reply("\n".repeat(Number((input as { size: string }).size)), {
        headers: { "content-type": "text/plain" },
      }),
  });
  r.query("item.stream", {
    ...open,
    route: "GET /stream",
    handler: async () => {
      const chunk = new Uint8Array(1_000_000);
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(chunk),
      });
      return reply(body, { headers: { "content-type": "application/octet-stream" } });
    },
  });
  r.query("item.odd", {
    ...open,
    route: "GET /odd",
    handler: async () => reply("", { status: 299, headers: { "content-type": "text/plain" } }),
  });
});

const build = (options: Partial<Parameters<typeof buildServer>[0]> = {}): Server =>
  buildServer({ features: [large], log: { level: "error" }, ...options });

interface Ask {
  readonly method?: string;
  readonly path: string;
  /** Encoded, as the client sends it. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
  readonly as?: { readonly sub: string; readonly tenantId: string };
}

interface Answered {
  readonly statusCode: number;
  readonly statusDescription?: string;
  readonly headers?: Record<string, string>;
  readonly multiValueHeaders?: Record<string, string[]>;
  readonly cookies?: string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
}

const address = "203.0.113.9";
const triggers: Record<
  string,
  Extract<
    LambdaTrigger,
    "restApi" | "httpApi" | "functionUrl" | "loadBalancer" | "loadBalancerMultiValue"
  >
> = {
  "REST API": "restApi",
  "HTTP API": "httpApi",
  "function URL": "functionUrl",
  "load balancer": "loadBalancer",
  "load balancer with multi-value headers": "loadBalancerMultiValue",
};
/** The same request as each kind of trigger delivers it. */
const eventOf = (
  name: string,
  { query, isBase64Encoded, as, headers = {}, path, ...ask }: Ask,
): LambdaHttpEvent => {
  const event = lambdaEvent(triggers[name] ?? "httpApi", {
    ...ask,
    path: query === undefined ? path : `${path}?${query}`,
    headers: name.startsWith("load balancer")
      ? { "x-forwarded-for": "198.51.100.1", ...headers }
      : headers,
    ip: address,
    stage: "dev",
    ...(as === undefined ? {} : { claims: as }),
  });
  return isBase64Encoded === undefined ? event : { ...event, isBase64Encoded };
};

const names = Object.keys(triggers);
const gateways = ["REST API", "HTTP API"];
const handle = async (
  server: Server,
  event: unknown,
  handler = lambdaHttp<LambdaHttpEvent>(server),
): Promise<Answered> => (await handler(event as LambdaHttpEvent, lambdaContext())) as Answered; // what all shapes have in common
const invoke = (name: string, ask: Ask, server = build()) => handle(server, eventOf(name, ask));
const header = (answer: Answered, name: string) =>
  answer.headers?.[name] ?? answer.multiValueHeaders?.[name]?.[0];
const json = ({ body = "" }: Answered) => JSON.parse(body);
const jsonType = { "Content-Type": "application/json" };

test.for(names)("%s: path, decoded query and request ID reach the handler", async (name) => {
  const query = "q=a%26b%3D%C3%BC%2B1&%5Bx%5D=100%25";
  const answer = await invoke(name, {
    path: "/items/a%20b",
    query,
    headers: { "X-Request-ID": "mine" },
  });

  expect(answer.statusCode).toBe(200);
  expect(header(answer, "x-request-id")).toBe("mine");
  expect(json(answer)).toMatchObject({
    input: { id: "a b", q: "a&b=ü+1", "[x]": "100%" },
    requestId: "mine",
  });
});

test.for(names.filter((name) => name !== "load balancer"))(
  "%s: a parameter given twice arrives as a list",
  async (name) => {
    expect(
      json(await invoke(name, { path: "/items/1", query: "tag=a&tag=b%2C" })).input.tag,
    ).toEqual(["a", "b,"]);
  },
);

test.for(names)(
  "%s: ctx.request has method, path, headers in lower case, cookies and the caller's address",
  async (name) => {
    const seen = json(
      await invoke(name, {
        path: "/request",
        headers: { "X-Custom": "1" },
        cookies: ["a=1", "b=2"],
      }),
    );

    expect(seen).toMatchObject({
      method: "GET",
      path: "/request",
      headers: { "x-custom": "1" },
      cookies: { a: "1", b: "2" },
      ip: address,
    });
  },
);

test.for([
  ["198.51.100.1, 203.0.113.9:50123", address],
  ["[2001:db8::1]:50123", "2001:db8::1"],
  ["203.0.113.9, ", undefined],
  ["203.0.113.9, unknown", undefined],
])("a load balancer's X-Forwarded-For %j gives the address %j", async ([forwarded = "", ip]) => {
  const event = eventOf("load balancer", { path: "/request" });
  const headers = { ...event.headers, "x-forwarded-for": forwarded };
  expect(json(await handle(build(), { ...event, headers })).ip).toBe(ip);
});

test.for(names)("%s: reads a text or base64 body, and answers 413 over the limit", async (name) => {
  const post = { method: "POST", path: "/items", headers: jsonType };
  const server = build({ limits: { bodyBytes: 20 } });

  expect(json(await invoke(name, { ...post, body: '{"a":"ü"}' }, server))).toEqual({ a: "ü" });
  expect(
    json(await invoke(name, { ...post, body: btoa('{"a":2}'), isBase64Encoded: true }, server)),
  ).toEqual({ a: 2 });
  expect(
    (await invoke(name, { ...post, body: `{"a":"${"x".repeat(20)}"}` }, server)).statusCode,
  ).toBe(413);
});

test.for(names)("%s: sends bytes as base64", async (name) => {
  expect(await invoke(name, { path: "/bytes" })).toMatchObject({
    isBase64Encoded: true,
    body: "AP8=",
  });
});

test.for(names)(
  "%s: HEAD gets the headers and no body, and an error has the uniform body",
  async (name) => {
    const head = await invoke(name, { method: "HEAD", path: "/items/1" });
    const missing = await invoke(name, { path: "/nowhere", headers: { "X-Request-ID": "r1" } });

    expect([head.statusCode, head.body || "", Number(header(head, "content-length")) > 0]).toEqual([
      200,
      "",
      true,
    ]);
    expect([missing.statusCode, header(missing, "x-request-id")]).toEqual([404, "r1"]);
    expect(json(missing)).toMatchObject({ error: "not_found", requestId: "r1" });
  },
);

test.for(names)(
  "%s: a middleware's early response keeps its headers and gets the request ID and CORS",
  async (name) => {
    const server = build({ cors: { origins: "*" } });
    const handler = lambdaHttp<LambdaHttpEvent>(server).before(
      () => ({ statusCode: 418, headers: { "X-Tea": "1" }, body: "" }) as never,
    );
    const answer = await handle(
      server,
      eventOf(name, { path: "/x", headers: { origin: "https://a.example" } }),
      handler,
    );

    expect(answer.statusCode).toBe(418);
    expect(header(answer, "x-tea")).toBe("1");
    expect(header(answer, "x-request-id")).toMatch(/./);
    expect(header(answer, "access-control-allow-origin")).toBe("*");
  },
);

test.for(names)("%s: a function of one handler answers its own route only", async (name) => {
  const server = build();
  const show = lambdaHandler<LambdaHttpEvent>(server, "large.item.show");

  expect((await handle(server, eventOf(name, { path: "/items/7" }), show)).statusCode).toBe(200);
  expect((await handle(server, eventOf(name, { path: "/request" }), show)).statusCode).toBe(404);
});

test.for(gateways)("%s: takes the caller from the claims its authorizer verified", async (name) => {
  expect(
    json(await invoke(name, { path: "/who", as: { sub: "ann", tenantId: "acme" } })),
  ).toMatchObject({
    id: "ann",
    tenantId: "acme",
  });
});

test("takes the caller from a REST API's Lambda authorizer, but not from incomplete claims", async () => {
  const rest = (authorizer: unknown) => {
    const event = eventOf("REST API", { path: "/who" });
    return handle(build(), { ...event, requestContext: { ...event.requestContext, authorizer } });
  };

  expect(json(await rest({ principalId: "p", sub: "bob", tenantId: "globex" }))).toMatchObject({
    id: "bob",
  });
  for (const authorizer of [
    null,
    {},
    { claims: null },
    { principalId: "p" },
    { sub: "bob", tenantId: "globex" },
  ]) {
    expect((await rest(authorizer)).statusCode).toBe(401);
  }
});

test("reads a list of roles in the format of its gateway's authorizer, and splits no other role", async () => {
  const rolesOf = async (name: string, authorizer: unknown, format = {}) => {
    const event = { ...eventOf(name, { path: "/who" }), ...format };
    return json(
      await handle(build(), { ...event, requestContext: { ...event.requestContext, authorizer } }),
    ).roles;
  };
  const claims = (roles: string) => ({ sub: "ann", tenantId: "acme", roles });
  const by = {
    jwt: (roles: string) => rolesOf("HTTP API", { jwt: { claims: claims(roles) } }),
    "jwt in format 1.0": (roles: string) =>
      rolesOf("REST API", { claims: claims(roles) }, { version: "1.0" }),
    cognito: (roles: string) => rolesOf("REST API", { claims: claims(roles) }),
    "lambda of an HTTP API": (roles: string) => rolesOf("HTTP API", { lambda: claims(roles) }),
    "lambda of a REST API": (roles: string) =>
      rolesOf("REST API", { principalId: "p", ...claims(roles) }),
  };
  for (const [name, read] of Object.entries(by)) {
    expect(await read("Sales,admin"), name).toEqual(
      name === "cognito" ? ["Sales", "admin"] : ["Sales,admin"],
    );
    expect(await read("Read-only admin"), name).toEqual(["Read-only admin"]);
    expect(await read('["Read-only admin","Sales,admin"]'), name).toEqual([
      "Read-only admin",
      "Sales,admin",
    ]);
    expect(await read("[editor admin]"), name).toEqual(
      name.startsWith("jwt") ? ["editor", "admin"] : undefined,
    );
  }
});

test.for(names)(
  "%s: no header authenticates a caller, not even a load balancer's x-amzn-oidc-data",
  async (name) => {
    const data = btoa(JSON.stringify({ sub: "ann", tenantId: "acme" }));
    const headers = {
      "x-amzn-oidc-data": `e30.${data}.e30`,
      "x-amzn-oidc-identity": "ann",
      "x-user-id": "ann",
    };

    expect((await invoke(name, { path: "/who", headers })).statusCode).toBe(401);
  },
);

test("ignores an authorizer in a load balancer's event", async () => {
  const event = eventOf("load balancer", { path: "/who" });
  const requestContext = {
    ...event.requestContext,
    authorizer: { claims: { sub: "ann", tenantId: "acme" } },
  };

  expect((await handle(build(), { ...event, requestContext })).statusCode).toBe(401);
});

test("sends two cookies wherever the shape has room for them", async () => {
  const ask = { method: "POST", path: "/items", headers: jsonType, body: "{}" };
  const both = [expect.stringMatching(/^a=1;/), expect.stringMatching(/^b=2;/)];

  expect((await invoke("HTTP API", ask)).cookies).toEqual(both);
  expect((await invoke("function URL", ask)).cookies).toEqual(both);
  for (const name of ["REST API", "load balancer with multi-value headers"]) {
    const { headers, multiValueHeaders } = await invoke(name, ask);
    expect([headers?.["set-cookie"], multiValueHeaders?.["set-cookie"]]).toEqual([undefined, both]);
  }
});

test("sends a load balancer without multi-value headers the first cookie, and logs the loss of the others", async () => {
  const lines: string[] = [];
  const output = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((line) => lines.push(String(line)) > 0);
  const one = await invoke("load balancer", { method: "POST", path: "/login" });
  const silent = lines.length;
  const two = await invoke("load balancer", {
    method: "POST",
    path: "/items",
    headers: jsonType,
    body: "{}",
  });
  output.mockRestore();

  expect([one.statusCode, one.headers?.["set-cookie"], silent]).toEqual([
    204,
    expect.stringMatching(/^a=1;/),
    0,
  ]);
  expect(two.headers?.["set-cookie"]).toMatch(/^a=1;/);
  expect(JSON.parse(lines.join(""))).toMatchObject({
    level: "error",
    msg: "response.cookies_dropped",
    dropped: 1,
  });
});

test("sends a load balancer a status line, with only the number of an unknown status", async () => {
  expect((await invoke("load balancer", { path: "/items/1" })).statusDescription).toBe("200 OK");
  expect((await invoke("load balancer", { path: "/nowhere" })).statusDescription).toBe(
    "404 Not Found",
  );
  expect((await invoke("load balancer", { path: "/odd" })).statusDescription).toBe("299");
});

test.for(names)(
  "%s: answers 500 to a response that is too large for the transport as JSON, with one line",
  async (name) => {
    const limit = name.startsWith("load balancer") ? 1_000_000 : 6_291_456;
    const lines: string[] = [];
    const output = vi
      .spyOn(process.stdout, "write")
      .mockImplementation((line) => lines.push(String(line)) > 0);
    // A line break takes two bytes in JSON, so this is half of the limit and yet too large.
    const over = await invoke(name, {
      path: `/text/${limit / 2}`,
      headers: { "X-Request-ID": "r1" },
    });
    const stream = await invoke(name, { path: "/stream" });
    output.mockRestore();
    const under = await invoke(name, { path: `/text/${limit / 2 - 1_000}` });

    for (const answer of [over, stream]) {
      expect(answer.statusCode).toBe(500);
      expect(json(answer)).toMatchObject({ error: "response_too_large" });
    }
    expect(header(over, "x-request-id")).toBe("r1");
    expect(lines.map((line) => JSON.parse(line).error)).toEqual([
      "response_too_large",
      "response_too_large",
    ]);
    expect([under.statusCode, under.body?.length]).toEqual([200, limit / 2 - 1_000]);
  },
);

test("the stage is part of an HTTP API's path in payload format 1.0, but never of a REST API's", async () => {
  const event = eventOf("REST API", { path: "/dev/items/1" });

  expect((await handle(build(), { ...event, version: "1.0" })).statusCode).toBe(200);
  expect((await handle(build(), event)).statusCode).toBe(404);
});

test("accepts headers of middlewares in any form, and lists take precedence", async () => {
  const result = {
    statusCode: 200,
    headers: { "Set-Cookie": "a=1", Vary: "Accept" },
    multiValueHeaders: { "set-cookie": ["b=2"], VARY: ["Accept", "Origin"], "X-One": "1" },
  };
  const server = build();
  const handler = lambdaHttp<LambdaHttpEvent>(server).before(() => result as never);
  const { headers, multiValueHeaders } = await handle(
    server,
    eventOf("REST API", { path: "/x" }),
    handler,
  );

  expect(headers).toMatchObject({ vary: "Accept, Origin", "x-one": "1" });
  expect(multiValueHeaders).toEqual({ "set-cookie": ["a=1", "b=2"] });
});

test("accepts events with required members only, and ignores odd values", async () => {
  const rest = { httpMethod: "GET", path: "/items/1", requestContext: {} };
  const odd = {
    ...rest,
    headers: { "x-request-id": 7 },
    multiValueHeaders: { "x-request-id": "text" },
    queryStringParameters: { q: { a: 1 } },
  };

  expect(json(await handle(build(), rest)).input).toEqual({ id: "1" });
  expect(json(await handle(build(), odd)).input).toEqual({ id: "1" });
  expect((await handle(build(), { ...rest, requestContext: { elb: {} } })).statusDescription).toBe(
    "200 OK",
  );
});

test("fails the invocation for an event that is not HTTP, instead of answering it", async () => {
  const others = [
    null,
    "text",
    {},
    { Records: [] },
    { version: "0", "detail-type": "file.created" },
    { httpMethod: "GET", path: "/" },
  ];

  for (const event of others)
    await expect(handle(build(), event)).rejects.toThrow(/check the function's trigger/);
});

test("keeps 200 overlapping invocations of different tenants and shapes apart", async () => {
  const secret = "s".repeat(32);
  const server = build({ auth: { secret } });
  const handler = lambdaHttp<LambdaHttpEvent>(server);
  const asks = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const name = names[index % names.length] as string; // the index is below the length
      const as = { sub: `user-${index}`, tenantId: `tenant-${index}` };
      const token = new SignJWT(as).setProtectedHeader({ alg: "HS256" }).setExpirationTime("1h");
      return {
        name,
        id: `r${index}`,
        as,
        token: await token.sign(new TextEncoder().encode(secret)),
      };
    }),
  );
  const answers = await Promise.all(
    asks.map(({ name, id, token }) => {
      const headers = { "X-Request-ID": id, Authorization: `Bearer ${token}` };
      return handle(
        server,
        eventOf(name, { path: "/items/1", query: `n=${id}`, headers }),
        handler,
      );
    }),
  );

  expect(answers.map(json)).toEqual(
    asks.map(({ id, as }) => ({
      input: { id: "1", n: id },
      requestId: id,
      tenantId: as.tenantId,
      user: { id: as.sub, tenantId: as.tenantId, roles: [], kind: "user" },
    })),
  );
});
