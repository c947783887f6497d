import { gzipSync } from "node:zlib";
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { answersOtherwise } from "../../../test/support/held/hold.ts";
import { access } from "../../base/identity/access.ts";
import type { CommitItem } from "../../base/types/database.ts";
import { reply } from "../../parts/http/reply.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext, QueryContext } from "../handlers/pipeline-context.ts";
import type { ServerOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";

let validations = 0;
/** What is sent has no password hash, a default and a number as a text; it is no result that the schema takes. */
const account = z
  .object({
    id: z.string(),
    visits: z.number().default(0),
    contacts: z.record(z.string(), z.number()).optional(),
  })
  .transform((value) => {
    validations += 1;
    return { ...value, visits: `${value.visits} visits` };
  });
const secret = "$2b$10$hash";
const row = { id: "ann", passwordHash: secret, visits: 7 };
const sent = { id: "ann", visits: "7 visits" };
/** At two places, one of them named by data. */
const wrong = { ...row, visits: secret, contacts: { "ann@example.com": secret } };
const paths = ["visits", "contacts.*"];

/** What a handler of the moment returns: nothing about it is known. */
type Handle = (ctx: PipelineContext) => unknown;
let handle: Handle = () => row;
let tries = 0;

const everyone = { access: access.everyone };
const accounts = defineFeature("accounts", (r) => {
  const table = r.table("accounts", { partitionKey: "pk", tenant: false });
  const handler = async (ctx: QueryContext) => {
    tries += 1;
    // Safe cast: only a write's work uses what a query's `ctx` lacks.
    return (await handle(ctx as PipelineContext)) as z.input<typeof account>;
  };
  r.event("account.made", z.object({ id: z.string() }));
  r.query("account.show", { route: "GET /account", ...everyone, output: account, handler });
  r.write("account.make", { route: "POST /account", ...everyone, output: account, handler });
  r.query("account.plain", { route: "GET /plain", ...everyone, handler });
  r.query("account.ask", {
    handler: async (ctx) => {
      const ask = () => ctx.query("accounts.account.show" as never, {} as never);
      return [await ask(), await ask()];
    },
  });
  r.query("account.slow", {
    route: "GET /slow",
    ...everyone,
    output: {
      "~standard": {
        ...account["~standard"],
        validate: async (value) => account["~standard"].validate(value),
      },
    },
    handler,
  });
  r.query("account.has", {
    input: z.object({ pk: z.string() }),
    handler: async (ctx, Key) =>
      (await ctx.db.send(new GetCommand({ TableName: table.name, Key, ConsistentRead: true })))
        .Item !== undefined,
  });
  return { table };
});
const put = (pk: string, condition = "attribute_not_exists(pk)"): CommitItem => ({
  Put: { TableName: accounts.table.name, Item: { pk }, ConditionExpression: condition },
});
const started = (output?: ServerOptions["output"]) =>
  startTestApp(buildServer({ features: [accounts], ...(output && { output }) }));

let app: TestApp;
let sends: TestApp;
beforeAll(async () => {
  [app, sends] = await Promise.all([started(), started({ mismatch: "send" })]);
});
afterAll(() => Promise.all([app.close(), sends.close()]));
beforeEach(() => {
  [handle, validations, tries] = [() => row, 0, 0];
});
let keys = 0;
const newKey = () => ({ "idempotency-key": `key-${++keys}` });
const post = (headers: Record<string, string> = newKey(), of = app) =>
  of.fetch("/account", { method: "POST", headers });
const has = (pk: string, of = app) => of.call("accounts.account.has", { pk });
const linesOf = (requestId: string, of = app) =>
  of.logs.filter(
    (line) =>
      line["requestId"] === requestId && line["level"] !== "debug" && line["level"] !== "info",
  );

describe("a result that fits its output schema", () => {
  test.each<[string, unknown]>([
    ["a value", row],
    ["a promise of one", Promise.resolve(row)],
    ["a reply", reply(row)],
    ["a Response", Response.json(row)],
  ])("is sent as the schema returns it, without removed fields: %s", async (_, returned) => {
    handle = () => (returned instanceof Response ? returned.clone() : returned);
    for (const response of [await app.fetch("/account"), await post(), await app.fetch("/slow")]) {
      const text = await response.text();

      expect([response.status, JSON.parse(text)]).toEqual([200, sent]);
      expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
    }
    expect(validations).toBe(3);
  });

  test("keeps the handler's status and headers, except a Response's digests", async () => {
    const headers = { location: "/account/1", etag: '"1"' };
    handle = () => reply(row, { status: 201, headers });
    const replied = await post();
    handle = () =>
      Response.json(row, {
        status: 201,
        headers: { ...headers, "set-cookie": "a=1", digest: "x", "content-digest": "y" },
      });
    const responded = await post();

    for (const response of [replied, responded]) {
      expect([response.status, await response.json()]).toEqual([201, sent]);
      expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    }
    expect(responded.headers.getSetCookie()).toEqual(["a=1"]);
    expect([responded.headers.has("digest"), responded.headers.has("content-digest")]).toEqual([
      false,
      false,
    ]);
  });

  test("is also what code that calls the handler gets", async () => {
    expect(await app.call("accounts.account.show")).toEqual(sent);
    expect(await app.call("accounts.account.ask")).toEqual([sent, sent]);
    expect(await app.call("accounts.account.make")).toEqual(sent);
  });

  test("is stored with a write and replayed without a second validation", async () => {
    for (const returned of [row, Response.json(row)]) {
      [validations, tries] = [0, 0];
      handle = () => returned;
      const headers = newKey();
      const [first, again] = [await post(headers), await post(headers)];

      expect([await first.json(), await again.json()]).toEqual([sent, sent]);
      expect(again.headers.get("idempotent-replayed")).toBe("true");
      expect([validations, tries]).toEqual([1, 1]);
    }
  });

  test.each<[string, Handle]>([
    ["returned as well", (ctx) => ctx.commit([put(ctx.requestId)], row)],
    [
      "returned anew",
      async (ctx) => ({ ...(await ctx.commit([put(ctx.requestId)], row)), id: "another" }),
    ],
    ["a Response", (ctx) => ctx.commit([put(ctx.requestId)], Response.json(row))],
    ["what nobody waits for", (ctx) => void ctx.commit([put(ctx.requestId)], row)],
    [
      "followed by what does not fit",
      async (ctx) => void (await ctx.commit([put(ctx.requestId)], row)),
    ],
  ])("is committed with the items and validated once: %s", async (_, committing) => {
    handle = committing;
    const requestId = `committed-${++keys}`;
    const headers = { ...newKey(), "x-request-id": requestId };
    const [first, again] = [await post(headers), await post(headers)];

    expect([first.status, await first.json(), await again.json()]).toEqual([200, sent, sent]);
    expect([validations, await has(requestId), linesOf(requestId)]).toEqual([1, true, []]);
  });

  const chunked = (text: string, headers: Record<string, string> = {}) =>
    new Response(ReadableStream.from([...Buffer.from(text)].map((byte) => Uint8Array.of(byte))), {
      headers: { "content-type": "application/json", ...headers },
    });
  const typed =
    (type: string, body: string | Buffer<ArrayBuffer> = JSON.stringify(row)) =>
    () =>
      new Response(body, { headers: { "content-type": type } });
  const json = JSON.stringify(row);
  test.each<[string, () => Response, string]>([
    ["of several chunks", () => chunked(json), "application/json"],
    ["with a mark of its byte order", () => chunked(`\ufeff${json}`), "application/json"],
    [
      "said to be another type's JSON",
      typed("application/problem+json; x=y"),
      "application/problem+json; x=y",
    ],
    [
      "of a vendor with two suffixes",
      typed('Application/VND.a+b+JSON;profile="x"'),
      'Application/VND.a+b+JSON;profile="x"',
    ],
    ["of no application", typed("model/gltf+json"), "model/gltf+json"],
    ["said to be text", typed("text/json"), "text/json"],
    [
      "whose type was given twice",
      typed("application/json, application/json"),
      "application/json, application/json",
    ],
    [
      "in another charset",
      typed("application/json; charset=utf-16le; x=y", Buffer.from(json, "utf16le")),
      "application/json; charset=utf-8; x=y",
    ],
    [
      "in another charset, with a mark",
      typed('application/json;charset="UTF-16"', Buffer.from(`\ufeff${json}`, "utf16le")),
      "application/json; charset=utf-8",
    ],
    [
      "said to be in another charset",
      typed("application/json; charset=iso-8859-1"),
      "application/json; charset=utf-8",
    ],
    ["not compressed", () => chunked(json, { "content-encoding": "Identity" }), "application/json"],
  ])("is sent and returned to callers: a Response %s", async (_, returned, type) => {
    handle = returned;
    for (const response of [await app.fetch("/account"), await post()]) {
      const text = await response.text();

      expect([response.status, JSON.parse(text), response.headers.get("content-type")]).toEqual([
        200,
        sent,
        type,
      ]);
      expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
    }
    expect(await app.call("accounts.account.ask")).toEqual([sent, sent]);
    expect(await app.call("accounts.account.make")).toEqual(sent);
    answersOtherwise("a document knows JSON by one type");
  });

  test("may be a streaming Response: without a schema it is streamed to clients and parsed for code", async () => {
    handle = () => {
      const parts = [json.slice(0, 10), json.slice(10)];
      const stream = new ReadableStream<Uint8Array>({
        pull: async (controller) => {
          const part = parts.shift();
          if (part === undefined) return controller.close();
          for (let turn = 0; turn < 3; turn++)
            await new Promise((resolve) => setImmediate(resolve));
          controller.enqueue(Buffer.from(part));
        },
      });
      return new Response(stream, { headers: { "content-type": "application/json" } });
    };
    const [streamed, checked] = [await app.fetch("/plain"), await app.fetch("/account")];

    expect([streamed.headers.has("content-length"), await streamed.json()]).toEqual([false, row]);
    expect([checked.headers.has("content-length"), await checked.json()]).toEqual([true, sent]);
    expect(await app.call("accounts.account.plain")).toEqual(row);
  });

  test("is what a handler returns after its commit has failed", async () => {
    const made = { ...row };
    handle = async (ctx) => {
      await ctx.commit([put("taken", "attribute_exists(pk)")], made).catch(() => undefined);
      made.visits = 8;
      return made;
    };

    expect(await (await post()).json()).toEqual({ id: "ann", visits: "8 visits" });
  });

  test("is empty when the schema returns undefined", async () => {
    const quiet = defineFeature("quiet", (r) => {
      const output = z.looseObject({}).transform(() => undefined);
      r.query("item.value", { route: "GET /value", ...everyone, output, handler: () => row });
      r.query("item.response", {
        route: "GET /response",
        ...everyone,
        output,
        handler: () => Response.json(row),
      });
    });
    const own = await startTestApp(buildServer({ features: [quiet] }));
    try {
      const [value, response] = [await own.fetch("/value"), await own.fetch("/response")];
      expect([value.status, response.status, await response.text()]).toEqual([204, 200, ""]);
      answersOtherwise("no document says that a transform gives nothing");
    } finally {
      await own.close();
    }
  });
});

test("hooks get the schema's result, validated once per write, whether it commits or returns", async () => {
  const results: unknown[] = [];
  const take = (_ctx: unknown, _input: unknown, result: unknown) => {
    results.push(result);
    return [];
  };
  const watched = defineFeature("watched", (r) => {
    r.hook("accounts.account.make" as never, { commit: take, after: take } as never);
  });
  const own = await startTestApp(buildServer({ features: [accounts, watched] }));
  try {
    const utf16 = () =>
      new Response(Buffer.from(JSON.stringify(row), "utf16le"), {
        headers: { "content-type": "application/json; charset=utf-16le" },
      });
    for (const does of [
      () => row,
      () => Response.json(row),
      utf16,
      (ctx: PipelineContext) => ctx.commit([], reply(row)),
    ]) {
      [results.length, validations] = [0, 0];
      handle = does;

      expect(await (await post(newKey(), own)).json()).toEqual(sent);
      expect([results, validations]).toEqual([[sent, sent], 1]);
    }
  } finally {
    await own.close();
  }
});

describe("the output schema does not check", () => {
  const stream = () => new Response("text").body;
  test.each<[string, () => unknown, number, string]>([
    [
      "bytes",
      () => reply(Buffer.from("bytes"), { headers: { "content-type": "text/plain" } }),
      200,
      "bytes",
    ],
    [
      "a buffer",
      () => reply(new ArrayBuffer(1), { headers: { "content-type": "text/plain" } }),
      200,
      "\0",
    ],
    ["a stream", () => reply(stream(), { headers: { "content-type": "text/plain" } }), 200, "text"],
    ["an error", () => reply({ error: "gone" }, { status: 410 }), 410, '{"error":"gone"}'],
    ["a redirect", () => reply(undefined, { status: 302, headers: { location: "/" } }), 302, ""],
    [
      "a Response that is an error",
      () => Response.json({ error: "gone" }, { status: 410 }),
      410,
      '{"error":"gone"}',
    ],
    ["a Response that is no JSON", () => new Response("text"), 200, "text"],
  ])("%s", async (_, returned, status, text) => {
    handle = returned;
    const response = await app.fetch("/account");
    answersOtherwise("what a schema does not describe is sent all the same");

    expect([response.status, await response.text(), validations]).toEqual([status, text, 0]);
  });

  test("bytes without a content type, which fail with their own error", async () => {
    handle = () => Buffer.from("bytes");
    expect(await (await app.fetch("/account")).json()).toMatchObject({ error: "internal_error" });
  });

  test("a write's unreadable Response, although the write is done", async () => {
    const response = Response.json(row);
    await response.text();
    handle = () => response;
    const headers = newKey();
    const [first, again] = [await post(headers), await post(headers)];

    expect([await first.json(), again.headers.get("idempotent-replayed")]).toMatchObject([
      { error: "internal_error" },
      "true",
    ]);
  });

  test("a handler without an output schema", async () => {
    expect(await (await app.fetch("/plain")).json()).toEqual(row);
  });
});

describe("a result that does not fit its output schema", () => {
  const jsonOf = (
    body: string | Buffer<ArrayBuffer>,
    more = "",
    headers: Record<string, string> = {},
  ) => new Response(body, { headers: { "content-type": `application/json${more}`, ...headers } });

  test("is reported for compressed JSON, with the reason in the log line", async () => {
    handle = () => jsonOf(gzipSync(JSON.stringify(row)), "", { "content-encoding": "gzip" });
    const requestId = `wrong-${++keys}`;
    const response = await app.fetch("/account", { headers: { "x-request-id": requestId } });

    expect([response.status, (await response.json()) as unknown]).toMatchObject([
      500,
      { error: "response_mismatch" },
    ]);
    expect(JSON.stringify(linesOf(requestId))).toContain(
      "return it unencoded, without a content-encoding",
    );
  });

  test("is not reported for a Response too large to read: it fails with its own error and its stream is cancelled", async () => {
    let isCancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(Buffer.alloc(1_048_576, " ")),
      cancel: () => {
        isCancelled = true;
      },
    });
    handle = () => new Response(endless, { headers: { "content-type": "application/json" } });

    expect(await (await app.fetch("/account")).json()).toMatchObject({
      error: "response_too_large",
    });
    expect(isCancelled).toBe(true);
  });

  test.each<[string, () => unknown, readonly string[]]>([
    ["a value", () => wrong, paths],
    ["a reply", () => reply(wrong), paths],
    ["a Response", () => Response.json(wrong), paths],
    [
      "a Response whose JSON is none",
      () => new Response(secret, { headers: { "content-type": "application/json" } }),
      ["result"],
    ],
    [
      "a Response whose text is none in UTF-8",
      () => jsonOf(Buffer.from([0x22, 0xff, 0x22])),
      ["result"],
    ],
    [
      "a Response in a charset that nobody knows",
      () => jsonOf('{"id":"ann"}', "; charset=x-none"),
      ["result"],
    ],
    ["a Response that has no text", () => jsonOf(""), ["result"]],
    ["nothing", () => undefined, ["result"]],
  ])(
    "is a 500 with one line that names handler and paths but no values: %s",
    async (_, returned, at) => {
      handle = returned;
      const requestId = `wrong-${++keys}`;
      const response = await app.fetch("/account", { headers: { "x-request-id": requestId } });

      expect([response.status, await response.json()]).toEqual([
        500,
        {
          error: "response_mismatch",
          message: "The server's response does not match its contract",
          requestId,
        },
      ]);
      const what = `accounts.account.show: the result does not fit its output schema at ${at.join(", ")}; `;
      expect(linesOf(requestId)).toEqual([
        expect.objectContaining({
          level: "error",
          msg: "request.failed",
          error: "response_mismatch",
          handler: "accounts.account.show",
          causes: expect.arrayContaining([
            expect.objectContaining({ message: expect.stringContaining(what) }),
          ]),
        }),
      ]);
      expect(JSON.stringify(linesOf(requestId))).not.toMatch(/hash|example\.com/);
    },
  );

  test.each<[string, Handle]>([
    ["commits it", (ctx) => ctx.commit([put(`wrong of ${ctx.requestId}`)], wrong)],
    [
      "commits it as a Response",
      (ctx) => ctx.commit([put(`wrong of ${ctx.requestId}`)], Response.json(wrong)),
    ],
    [
      "returns it after it has published",
      async (ctx) => {
        await ctx.publish("account.made" as never, { id: "ann" } as never);
        return wrong;
      },
    ],
  ])("leaves nothing behind when a write %s, and a retry runs again", async (_, does) => {
    handle = does;
    const requestId = `nothing-${++keys}`;
    const headers = { ...newKey(), "x-request-id": requestId };
    const first = await post(headers);
    await app.settled();

    expect([first.status, await has(`wrong of ${requestId}`), app.events]).toEqual([
      500,
      false,
      [],
    ]);
    expect(linesOf(requestId)).toHaveLength(1);
    handle = () => row;
    const again = await post(headers);
    expect([again.status, again.headers.get("idempotent-replayed"), tries]).toEqual([200, null, 2]);
  });

  test("names the query when another handler calls it", async () => {
    handle = () => wrong;
    await expect(app.call("accounts.account.ask")).rejects.toMatchObject({
      code: "response_mismatch",
      cause: { message: expect.stringContaining("accounts.account.show: ") },
    });
  });

  test("names at most ten paths, each of bounded length", async () => {
    const deep = Array.from({ length: 30 }, (_, level) => `l${level}`);
    const output = {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: () => ({
          issues: [
            { message: secret, path: [{ key: "a" }, 0, Symbol("s")] },
            { message: secret, path: deep },
            ...Array.from({ length: 20 }, (_, index) => ({ message: secret, path: [`p${index}`] })),
          ],
        }),
      },
    };
    const own = await startTestApp(
      buildServer({
        features: [
          defineFeature("many", (r) => {
            r.query("item.show", { output, handler: () => 1 as never });
          }),
        ],
      }),
    );
    try {
      const places = [
        "a.0.*",
        deep.slice(0, 20).join("."),
        ..."01234567".split("").map((index) => `p${index}`),
      ].join(", ");
      await expect(own.call("many.item.show")).rejects.toMatchObject({
        cause: {
          message: `many.item.show: the result does not fit its output schema at ${places}; fix the handler or the schema`,
        },
      });
    } finally {
      await own.close();
    }
  });
});

describe("with mismatch: send, a result that does not fit", () => {
  test.each<[string, () => unknown]>([
    ["a value", () => wrong],
    ["a reply", () => reply(wrong)],
    ["a Response", () => Response.json(wrong)],
  ])("is sent unchanged, with one warning of handler and paths: %s", async (_, returned) => {
    handle = returned;
    const requestId = `sent-${++keys}`;
    const response = await sends.fetch("/account", { headers: { "x-request-id": requestId } });

    expect([response.status, await response.json()]).toEqual([200, wrong]);
    expect(linesOf(requestId, sends)).toEqual([
      expect.objectContaining({
        level: "warn",
        msg: "response.mismatch",
        handler: "accounts.account.show",
        paths,
      }),
    ]);
  });

  test("is committed and replayed unchanged", async () => {
    handle = (ctx) => ctx.commit([put(ctx.requestId)], wrong);
    const requestId = `sent-${++keys}`;
    const headers = { ...newKey(), "x-request-id": requestId };
    const [first, again] = [await post(headers, sends), await post(headers, sends)];

    expect([
      await first.json(),
      await again.json(),
      again.headers.get("idempotent-replayed"),
    ]).toEqual([wrong, wrong, "true"]);
    expect([await has(requestId, sends), linesOf(requestId, sends).map(({ msg }) => msg)]).toEqual([
      true,
      ["response.mismatch"],
    ]);
  });

  test("is warned about once per request, however often code calls the handler", async () => {
    handle = () => wrong;
    const requestId = `sent-${++keys}`;

    expect(await sends.call("accounts.account.ask", {}, { requestId })).toEqual([wrong, wrong]);
    expect(linesOf(requestId, sends)).toEqual([
      expect.objectContaining({ handler: "accounts.account.show", paths }),
    ]);
  });

  test("does not affect results that fit, which are sent as the schema returns them", async () => {
    expect(await (await sends.fetch("/account")).json()).toEqual(sent);
  });
});

test("with check: development, production sends what handlers return without validating it", async () => {
  const own = await startTestApp(
    buildServer({
      features: [accounts],
      environment: "production",
      output: { check: "development" },
    }),
  );
  try {
    expect(await (await own.fetch("/account")).json()).toEqual(row);
    handle = () => reply(row);
    expect(await (await post(newKey(), own)).json()).toEqual(row);
    expect(validations).toBe(0);
  } finally {
    await own.close();
  }
});
