// Responses made from a handler's result, and the headers of every response.
import { expect, test } from "vitest";
import { hostless, requestOf } from "../../../test/fixtures/hostless.ts";
import { unusedAdapters } from "../../../test/fixtures/unused-adapters.ts";
import { answersOtherwise } from "../../../test/support/held/hold.ts";
import { access } from "../../base/identity/access.ts";
import { reply } from "../../parts/http/reply.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";
import { serve } from "./pipeline.ts";

const everyone = { access: access.everyone };
const text = { "content-type": "text/plain; charset=utf-8" };

/** Its body's chunks; `undefined` stands for a failure. */
const streamOf = (...chunks: readonly (string | undefined)[]) => {
  const left = [...chunks];
  return new ReadableStream<unknown>({
    pull(controller) {
      if (left.length === 0) return controller.close();
      const chunk = left.shift();
      if (chunk === undefined) controller.error(new Error("the source is broken"));
      else controller.enqueue(chunk);
    },
  });
};

const results: Readonly<Record<string, () => unknown>> = {
  plain: () => ({ n: 1 }),
  nothing: () => undefined,
  cookie: () => reply({}, { cookies: { session: { value: "s1" } } }),
  text: () => reply("hello", { headers: text }),
  headers: () =>
    reply("hello", {
      headers: {
        ...text,
        vary: "Accept-Language",
        "x-content-type-options": "off",
        "access-control-allow-origin": "https://own.example",
      },
    }),
  response: () => new Response("hello", { headers: text }),
  stream: () => reply(streamOf("one ", "two"), { headers: text }),
  broken: () => reply(streamOf(undefined), { headers: text }),
};
const answers = defineFeature("answers", (r) => {
  for (const [name, result] of Object.entries(results))
    r.query(`${name}.show`, { route: `GET /${name}`, ...everyone, handler: async () => result() });
  r.write("stream.make", {
    route: "POST /stream",
    ...everyone,
    handler: async () => results["stream"]?.(),
  });
  r.query("request.show", {
    route: "GET /request",
    ...everyone,
    handler: async ({ request }) => ({ path: request?.path, host: request?.headers["host"] }),
  });
  r.write("request.take", {
    route: "POST /request",
    ...everyone,
    body: "text",
    handler: async ({ request }) => ({ path: request?.path, bytes: request?.rawBody.length }),
  });
  r.query("commit.try", {
    route: "GET /commit",
    ...everyone,
    handler: async (ctx) => {
      // Safe: a query's ctx has it at run time, and it throws.
      const { commit } = ctx as unknown as { commit(items: unknown[]): Promise<void> };
      await commit([]);
    },
  });
  for (const body of ["form", "json"] as const)
    r.write(`${body}.send`, {
      route: `POST /${body}`,
      ...everyone,
      body,
      handler: async (_ctx, input) => ({ ...(input as object) }),
    });
  r.query("created.show", {
    route: "GET /created",
    ...everyone,
    status: [201, 304],
    handler: async (_ctx, input) => {
      const { status } = input as { readonly status?: string };
      return status === undefined ? {} : reply({}, { status: Number(status) });
    },
  });
});
const server = buildServer({ features: [answers] });
const app = hostless(server);

test("sends a result with its status, length and ID", async () => {
  const { scope, lines, json, ...plain } = await app.ask("GET /plain", {
    headers: { "x-request-id": "r1" },
  });

  expect(plain).toEqual({
    status: 200,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "content-length": "7",
      "x-request-id": "r1",
      "x-content-type-options": "nosniff",
    },
    cookies: [],
    body: '{"n":1}',
  });
  expect(await app.ask("GET /nothing")).toMatchObject({ status: 204, body: undefined });
});

test("answers HEAD as GET, without the body", async () => {
  const head = await app.ask("HEAD /plain");

  expect(head).toMatchObject({ status: 200, headers: { "content-length": "7" } });
  expect(head.body).toBeUndefined();
});

test("lets a handler choose its own x-content-type-options", async () => {
  const { headers } = await app.ask("GET /headers");
  expect(headers["x-content-type-options"]).toBe("off");
});

test("adds CORS headers to all responses, replaces a handler's own and extends Vary", async () => {
  const { ask } = hostless(
    buildServer({ features: [answers], cors: { origins: ["https://app.example.com"] } }),
  );
  const headersOf = async (target: string, origin = "https://app.example.com") => {
    const { headers } = await ask(target, { headers: { origin } });
    return [headers["vary"], headers["access-control-allow-origin"]];
  };

  expect(await headersOf("GET /plain")).toEqual(["Origin", "https://app.example.com"]);
  expect(await headersOf("GET /headers")).toEqual([
    "Accept-Language, Origin",
    "https://app.example.com",
  ]);
  expect(await headersOf("GET /nowhere")).toEqual(["Accept, Origin", "https://app.example.com"]);
  expect(await headersOf("GET /plain", "https://evil.example")).toEqual(["Origin", undefined]);
});

test("sends cookies only over HTTPS, except in development", async () => {
  const cookiesIn = async (environment: "development" | "test" | "production") =>
    (await hostless(server, { environment }).ask("GET /cookie")).cookies;

  const secure = "session=s1; Path=/; HttpOnly; Secure; SameSite=Lax";
  expect(await cookiesIn("production")).toEqual([secure]);
  expect(await cookiesIn("test")).toEqual([secure]);
  expect(await cookiesIn("development")).toEqual([secure.replace(" Secure;", "")]);
});

test("reads a web Response", async () => {
  const { status, headers, body } = await app.ask("GET /response");
  expect([status, headers["content-type"], body]).toEqual([200, text["content-type"], "hello"]);
});

test("sends a query's stream in bytes, with the facts of its reply", async () => {
  const answer = await app.ask("GET /stream");

  expect(answer).toMatchObject({ status: 200, headers: text, cookies: [] });
  const chunks: unknown[] = [];
  const stream = answer.body as ReadableStream<Uint8Array>; // safe: the handler returns a stream
  for await (const chunk of stream) chunks.push(chunk);
  expect(chunks).toEqual([Buffer.from("one "), Buffer.from("two")]);
});

test("answers with an error if a stream fails before its first chunk", async () => {
  const { status, json } = await app.ask("GET /broken");
  expect([status, json()]).toEqual([500, expect.objectContaining({ error: "internal_error" })]);
});

test("only a write has effects, and only a query may stream", async () => {
  const tried = await app.ask("GET /commit");
  expect(tried.lines).toMatchObject([
    { msg: "request.failed", message: "ctx.commit: a query reads; commit in a write" },
  ]);

  const made = await app.ask("POST /stream");
  expect(made.status).toBe(500);
  expect(made.lines).toMatchObject([
    {
      msg: "request.failed",
      message: "reply: only a query may answer with a stream; return the whole body",
    },
  ]);
});

test("gives handlers the request, with its bytes", async () => {
  const headers = { host: "files.example", "content-type": "text/plain" };
  const shown = await app.ask("GET /request", { headers });
  expect(shown.json()).toEqual({ path: "/request", host: "files.example" });

  const taken = await app.ask("POST /request", { headers, text: "five!" });
  expect(taken.json()).toEqual({ path: "/request", bytes: 5 });
});

test("only a form route takes a form that a middleware has parsed", async () => {
  let reads = 0;
  const sent = async (target: string, type: string, body: string, isParsed: boolean) => {
    const answer = await app.ask(target, {
      headers: { "content-type": type },
      readBody: () => {
        reads += 1;
        return Buffer.from(body);
      },
      ...(isParsed && { readForm: async (limitBytes: number) => ({ limitBytes }) }),
    });
    return answer.json();
  };
  const form = "application/x-www-form-urlencoded";

  expect(await sent("POST /form", form, "a=1", true)).toEqual({ limitBytes: 1_048_576 });
  expect(reads).toBe(0);
  expect(await sent("POST /form", form, "a=1", false)).toEqual({ a: "1" });
  expect(await sent("POST /json", "application/json", '{"a":1}', true)).toEqual({ a: 1 });
  expect(reads).toBe(2);
});

test("waits for a body that has not arrived yet", async () => {
  const { json } = await app.ask("POST /json", {
    headers: { "content-type": "application/json" },
    readBody: async () => Buffer.from('{"late":true}'),
  });
  expect(json()).toEqual({ late: true });
});

test("opens the adapters once, with the first request", async () => {
  let opened = 0;
  const openAdapters = async () => {
    opened += 1;
    return unusedAdapters;
  };
  const { ask } = hostless(server, { openAdapters });
  expect(opened).toBe(0);
  expect((await ask("GET /plain")).status).toBe(200);
  expect((await ask("GET /plain")).status).toBe(200);
  expect(opened).toBe(1);

  const open = async (): Promise<never> => {
    throw new Error("opened again");
  };
  const adapters = { all: { value: unusedAdapters }, open, openFor: open };
  expect((await hostless(server, {}, { adapters }).ask("GET /plain")).status).toBe(200);
});

test("warns about a plain 200 of a handler that declares another status first", async () => {
  answersOtherwise("it sends a status that it does not declare");
  const statuses = async (query: string) => {
    const { status, lines } = await app.ask("GET /created", { query });
    return [status, lines.map(({ msg, fix }) => [msg, fix])];
  };

  expect(await statuses("")).toEqual([201, []]);
  expect(await statuses("status=304")).toEqual([304, []]);
  expect(await statuses("status=200")).toEqual([
    200,
    [["status.undeclared", "declare it: status: [201,304,200]"]],
  ]);
  expect(await statuses("status=200")).toEqual([200, []]);
});

test("a request ends once its response is sent, and fails if that fails", async () => {
  const { runtime } = app;
  const order: string[] = [];
  const request = () => requestOf("GET /plain");
  const sender = {
    async send() {
      await new Promise(setImmediate);
      order.push("sent");
    },
  };
  await serve({ runtime, routes: runtime.routes }, request(), sender);
  order.push("ended");
  expect(order).toEqual(["sent", "ended"]);

  const lost = { send: () => Promise.reject(new Error("the connection is lost")) };
  await expect(serve({ runtime, routes: runtime.routes }, request(), lost)).rejects.toThrow("lost");
});

test("tells the host the ID of its request", async () => {
  const { runtime } = app;
  const request = requestOf("GET /plain", { headers: { "x-request-id": "r7" } });
  await serve({ runtime, routes: runtime.routes }, request, { send: () => undefined });
  expect(request.requestId).toBe("r7");
});
