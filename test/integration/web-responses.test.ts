import { access, buildServer, defineFeature } from "keelson";
import { type HttpApiEvent, type HttpApiResult, lambdaHttp } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { waitFor } from "../support/wait-for.ts";

const count = z.object({ count: z.number() });
const everyone = { access: access.everyone };
let runs = 0;
let read: Response;
/** What a client may send, and a row may hold: as much like a `Response`, a stream or a reply as JSON gets. */
const hostile = {
  bodyUsed: false,
  status: 200,
  headers: { getSetCookie: "x", "set-cookie": "a=1" },
  body: { getReader: 1, locked: true },
  pipe: 1,
  getReader: 1,
  "keelson.reply": true,
};

const pages = defineFeature("pages", (r) => {
  const table = r.table("pages", { partitionKey: "pk", tenant: false });
  const page = (name: string, make: () => Response | Promise<Response>) =>
    r.query(`page.${name}`, { route: `GET /${name}`, ...everyone, handler: make });
  page("text", () => new Response("hällo"));
  page(
    "html",
    () =>
      new Response("<p>1</p>", {
        headers: { "Content-Type": "text/html; charset=latin1", "X-Own": "1" },
      }),
  );
  page("bytes", () => new Response(new Uint8Array([0, 255])));
  page("empty", () => new Response("", { status: 202 }));
  page("none", () => new Response(null, { status: 204 }));
  page("unchanged", () => new Response(null, { status: 304, headers: { etag: '"1"' } }));
  page("moved", () => Response.redirect("https://example.com/new", 307));
  page("login", () => {
    const headers = new Headers({ "cache-control": "no-store" });
    headers.append("set-cookie", "a=1; Path=/; HttpOnly");
    headers.append("set-cookie", "b=2, and more");
    return new Response("in", { headers });
  });
  page("length", () => new Response("x", { headers: { "content-length": "1" } }));
  page("control", () => new Response("x", { headers: { "set-cookie": "a=\u0001" } }));
  page("failed", () => Response.error());
  page("read", async () => {
    read = new Response("x");
    await read.text();
    return read;
  });
  page("locked", () => {
    const response = new Response("x");
    response.body?.getReader();
    return response;
  });
  page(
    "torn",
    () =>
      new Response(
        new ReadableStream({ pull: (controller) => controller.error(new Error("torn")) }),
      ),
  );
  page(
    "odd",
    () =>
      new Response(
        new ReadableStream({ start: (controller) => controller.enqueue("text" as never) }),
      ),
  );
  page("slow", () => {
    let chunk = 0;
    const pull = async (controller: ReadableStreamDefaultController) => {
      await new Promise(setImmediate);
      if (++chunk > 3) controller.close();
      else controller.enqueue(Buffer.from(`${chunk}`));
    };
    return new Response(new ReadableStream({ pull }), {
      headers: { "content-type": "text/plain" },
    });
  });
  r.query("count.show", {
    route: "GET /count",
    ...everyone,
    output: count,
    handler: async () => Response.json({ count: 1 }),
  });
  r.query("count.wrong", {
    route: "GET /wrong",
    ...everyone,
    output: count,
    handler: () => Response.json({ count: "1" }),
  });
  r.query("count.gone", {
    route: "GET /gone",
    ...everyone,
    output: count,
    handler: () => Response.json({ gone: true }, { status: 410 }),
  });
  r.query("count.used", { output: count, handler: () => read });
  r.query("count.broken", {
    output: count,
    handler: () => new Response("{", { headers: { "content-type": "application/json" } }),
  });
  r.query("count.ask", {
    handler: async (ctx, input) => ({
      got: await ctx.query((input as { name: string }).name as never, {} as never),
    }),
  });
  const echo = { ...everyone, handler: (_ctx: unknown, input: unknown) => input };
  r.query("data.show", { route: "GET /data", ...echo, handler: () => hostile });
  r.query("data.checked", {
    route: "GET /checked",
    ...everyone,
    output: z.looseObject({}),
    handler: () => hostile,
  });
  r.write("data.keep", { route: "POST /data", ...echo });
  r.write("page.make", {
    route: "POST /pages",
    ...everyone,
    replayHeaders: ["x-kind"],
    handler: async () =>
      Response.json(
        { run: ++runs, text: "ä" },
        { status: 201, headers: { location: "/1", "x-kind": "new" } },
      ),
  });
  r.write("page.commit", {
    route: "POST /committed",
    ...everyone,
    output: z.object({ run: z.number() }),
    handler: async (ctx) =>
      ctx.commit(
        [{ Put: { TableName: table.name, Item: { pk: ctx.requestId } } }],
        Response.json({ run: ++runs }),
      ),
  });
  r.write("page.retry", {
    route: "POST /refused",
    ...everyone,
    handler: async (ctx) => {
      const response = Response.json({ run: ++runs });
      const put = {
        TableName: table.name,
        Item: { pk: "refused" },
        ConditionExpression: "attribute_exists(pk)",
      };
      return ctx.commit([{ Put: put }], response).catch(() => response);
    },
  });
  r.write("page.pack", {
    route: "POST /packed",
    ...everyone,
    handler: async () => new Response(new ReadableStream({ pull: endless(3) })),
  });
  r.write("page.flood", {
    route: "POST /flood",
    ...everyone,
    handler: async () => {
      runs += 1;
      return new Response(
        new ReadableStream({ pull: endless(Number.POSITIVE_INFINITY, 1_000_000) }),
      );
    },
  });
  r.write("page.used", {
    route: "POST /used",
    ...everyone,
    handler: async () => {
      runs += 1;
      const response = new Response("x");
      await response.text();
      return response;
    },
  });
});

/** Gives chunks of bytes that are no text, turn after turn. */
function endless(chunks: number, size = 2) {
  let given = 0;
  return async (controller: ReadableStreamDefaultController) => {
    await new Promise(setImmediate);
    if (++given > chunks) controller.close();
    else controller.enqueue(new Uint8Array(size).fill(0xff));
  };
}

/** What both hosts answer, in one form. */
interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly cookies: readonly string[];
  readonly body: Buffer;
  readonly isBase64?: boolean;
}

let app: TestApp;
const server = () =>
  buildServer({ features: [pages], environment: "test", log: { level: "error" } });
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const container = async (
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answered> => {
  const response = await app.fetch(path, { method, headers });
  const body = Buffer.from(await response.arrayBuffer());
  const cookies = response.headers.getSetCookie();
  return { status: response.status, headers: Object.fromEntries(response.headers), cookies, body };
};
const lambda = async (
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answered> => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true); // its log
  const event = { version: "2.0", rawPath: path, headers, requestContext: { http: { method } } };
  // Safe: the parts of an event that are read.
  const result: HttpApiResult = await lambdaHttp(server())(
    event as unknown as HttpApiEvent,
    {} as never,
  );
  const {
    statusCode,
    headers: given = {},
    cookies = [],
    body = "",
    isBase64Encoded = false,
  } = result;
  return {
    status: Number(statusCode),
    headers: given,
    cookies,
    body: Buffer.from(body, isBase64Encoded ? "base64" : "utf8"),
    isBase64: isBase64Encoded,
  };
};

describe.each(Object.entries({ container, lambda }))(
  "in the %s host a query's Response",
  (host, send) => {
    test.each([
      ["text", { status: 200, type: "text/plain;charset=UTF-8", body: "hällo" }],
      ["count", { status: 200, type: "application/json", body: '{"count":1}' }],
      ["gone", { status: 410, type: "application/json", body: '{"gone":true}' }],
      ["empty", { status: 202, type: "text/plain;charset=UTF-8", body: "" }],
      ["slow", { status: 200, type: "text/plain", body: "123" }],
    ])("answers with its status, content type and body: %s", async (path, expected) => {
      const { status, headers, body } = await send("GET", `/${path}`);

      expect({ status, type: headers["content-type"], body: body.toString() }).toEqual(expected);
      expect(headers["x-request-id"]).toEqual(expect.any(String));
      // What is there as a whole has its length, as any reply.
      if (path !== "slow" || host === "lambda") return;
      expect([headers["content-length"], headers["transfer-encoding"]]).toEqual([
        undefined,
        "chunked",
      ]);
    });

    test("has its length, and no body for HEAD", async () => {
      expect((await send("GET", "/text")).headers["content-length"]).toBe("6");
      const { status, headers, body } = await send("HEAD", "/text");
      expect([status, headers["content-length"], body.length]).toEqual([200, "6", 0]);
      expect((await send("HEAD", "/slow")).body).toHaveLength(0);
    });

    test("is sent as bytes without a content type, and in another charset unchanged", async () => {
      const bytes = await send("GET", "/bytes");
      expect([bytes.headers["content-type"], [...bytes.body]]).toEqual([
        "application/octet-stream",
        [0, 255],
      ]);
      const html = await send("GET", "/html");
      expect([html.headers["x-own"], html.body.toString()]).toEqual(["1", "<p>1</p>"]);
      if (host === "lambda") {
        expect([bytes.isBase64, html.isBase64, (await send("GET", "/text")).isBase64]).toEqual([
          true,
          true,
          false,
        ]);
      }
    });

    test.each([
      ["none", 204, {}],
      ["unchanged", 304, { etag: '"1"' }],
      ["moved", 307, { location: "https://example.com/new" }],
    ])("may lack a body: %s", async (path, status, headers) => {
      expect(await send("GET", `/${path}`)).toMatchObject({
        status,
        headers,
        body: Buffer.alloc(0),
      });
    });

    test("sets several cookies", async () => {
      const { headers, cookies } = await send("GET", "/login");

      expect(cookies).toEqual(["a=1; Path=/; HttpOnly", "b=2, and more"]);
      expect(headers["cache-control"]).toBe("no-store");
    });

    test.each(["length", "control", "failed", "read", "locked", "torn", "odd", "wrong"])(
      "answers 500 when it cannot be sent: %s",
      async (path) => {
        const { status, body } = await send("GET", `/${path}`);
        expect([status, JSON.parse(body.toString())]).toEqual([
          500,
          expect.objectContaining({
            error: path === "wrong" ? "response_mismatch" : "internal_error",
          }),
        ]);
      },
    );
  },
);

describe.each(Object.entries({ container, lambda }))(
  "in the %s host data with the members of a Response",
  (_host, send) => {
    test.each(["/data", "/checked"])("stays data in the answer of a query: %s", async (path) => {
      const { status, body, cookies } = await send("GET", path);
      expect([status, JSON.parse(String(body)), cookies]).toEqual([200, hostile, []]);
    });
  },
);

test("data with the members of a Response stays data in the answer of a write, and for the caller of a query", async () => {
  const answer = await app.fetch("/data", { method: "POST", body: hostile });
  expect([answer.status, await answer.json(), answer.headers.getSetCookie()]).toEqual([
    200,
    hostile,
    [],
  ]);
  expect(await app.call("pages.count.ask", { name: "pages.data.show" })).toEqual({ got: hostile });
});

describe("a Response that cannot be sent", () => {
  test.each([
    ["length", "reply: header content-length is set by keelson; leave it out"],
    ["control", "reply: header set-cookie has a character that a header cannot carry; encode it"],
    ["failed", "reply: status 0 is not a whole number from 200 to 599"],
    [
      "read",
      "reply: the body of the Response has been read already; return another Response, or response.clone() from before",
    ],
    [
      "locked",
      "reply: the body of the Response has been read already; return another Response, or response.clone() from before",
    ],
    ["torn", "torn"],
    ["odd", "reply: the stream of the Response has a chunk of type string; give it Uint8Array"],
    ["wrong", "The server's response does not match its contract"],
  ])("is logged with the reason: %s", async (path, message) => {
    const requestId = `wrong-${path}`;
    await container("GET", `/${path}`, { "x-request-id": requestId });

    expect(app.logs).toContainEqual(
      expect.objectContaining({ msg: "request.failed", requestId, message }),
    );
  });
});

describe("a Response that a write returns", () => {
  test.each([
    [
      "a text",
      "/pages",
      {
        status: 201,
        headers: { location: "/1", "x-kind": "new", "content-type": "application/json" },
      },
    ],
    ["committed", "/committed", { status: 200, headers: { "content-type": "application/json" } }],
    [
      "returned after its commit has failed",
      "/refused",
      { status: 200, headers: { "content-type": "application/json" } },
    ],
    [
      "a stream of bytes",
      "/packed",
      { status: 200, headers: { "content-type": "application/octet-stream" } },
    ],
  ])("is stored, and replayed byte for byte on either host: %s", async (_case, path, expected) => {
    const headers = { "idempotency-key": `repeated-${path.slice(1)}` };
    const first = await container("POST", path, headers);
    const again = await container("POST", path, headers);
    const elsewhere = await lambda("POST", path, headers);

    expect(first).toMatchObject(expected);
    expect(first.headers["idempotent-replayed"]).toBeUndefined();
    for (const repeat of [again, elsewhere]) {
      expect(repeat).toMatchObject({
        ...expected,
        headers: { ...expected.headers, "idempotent-replayed": "true" },
      });
      expect(repeat.body.equals(first.body)).toBe(true);
      expect(repeat.headers["content-length"]).toBe(first.headers["content-length"]);
    }
  });

  test.each([
    ["whose body has been read", "/used", "internal_error"],
    ["whose body has no end", "/flood", "response_too_large"],
  ])("%s is a 500 that is replayed, since the write is done", async (_case, path, error) => {
    runs = 0;
    const headers = { "idempotency-key": `unsendable-${path.slice(1)}` };
    const [first, again] = [
      await container("POST", path, headers),
      await container("POST", path, headers),
    ];

    expect([first.status, JSON.parse(first.body.toString()).error, runs]).toEqual([500, error, 1]);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([500, "true"]);
  });
});

describe("a Response of a handler that is called without HTTP", () => {
  test("is unwrapped to its body, with JSON parsed", async () => {
    expect(await app.call("pages.count.show")).toEqual({ count: 1 });
    expect(await app.call("pages.page.text")).toBe("hällo");
    expect(await app.call("pages.page.make")).toMatchObject({ text: "ä" });
    expect(await app.call("pages.count.ask", { name: "pages.count.show" })).toEqual({
      got: { count: 1 },
    });
    expect(await app.call("pages.count.ask", { name: "pages.page.text" })).toEqual({
      got: "hällo",
    });
  });

  test("rejects the call when it cannot be read", async () => {
    await app.fetch("/read");
    await expect(app.call("pages.count.used")).rejects.toThrow(
      "the body of the Response has been read already",
    );
    await expect(app.call("pages.count.broken")).rejects.toMatchObject({
      code: "response_mismatch",
      cause: {
        message: expect.stringContaining(
          "pages.count.broken: the result does not fit its output schema at result;",
        ),
      },
    });
  });
});

test("a stream is cancelled when its reader leaves or its response is refused; a later failure cuts the response off", async () => {
  let cancelled: unknown;
  let fail = (_error: Error) => {};
  const streams = defineFeature("streams", (r) => {
    r.query("stream.held", {
      route: "GET /held/:length",
      ...everyone,
      input: z.object({ length: z.string() }),
      handler: (_ctx, { length }) =>
        new Response(
          new ReadableStream({
            start: (controller) => {
              controller.enqueue(Buffer.from("begun"));
              fail = (error) => controller.error(error);
            },
            cancel: (reason) => {
              cancelled = reason ?? true;
            },
          }),
          length === "none" ? {} : { headers: { "content-length": length } },
        ),
    });
  });
  const streaming = await startTestApp(buildServer({ features: [streams] }));
  try {
    expect((await streaming.fetch("/held/5")).status).toBe(500);
    expect(cancelled).toBeDefined();
    cancelled = undefined;
    const left = await streaming.fetch("/held/none");
    await left.body?.cancel();
    await waitFor(() => expect(cancelled).toBeDefined());
    const broken = await streaming.fetch("/held/none");
    fail(new Error("later"));
    await expect(broken.text()).rejects.toThrow();
  } finally {
    await streaming.close();
  }
});
