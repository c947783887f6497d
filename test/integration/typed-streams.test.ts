// Queries with output: sse(…) or jsonLines(…), over HTTP and in process.
import { access, buildServer, defineFeature, jsonLines, reply, sse } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { allOf } from "../support/all-of.ts";
import { waitFor } from "../support/wait-for.ts";

const entry = z.object({ id: z.string(), text: z.string().default("none") });
/** Validates with a promise. */
const slowEntry = entry.refine(async ({ id }) => id !== "refused");
type Entry = z.input<typeof entry>;

let closed: string[] = [];
let held = Promise.withResolvers<void>();
afterEach(() => {
  closed = [];
  held = Promise.withResolvers();
});
/** Yields the items, notes when it is closed, and then waits. */
async function* following<Item>(...items: readonly Item[]) {
  try {
    yield* items;
    await held.promise;
  } finally {
    closed.push("closed");
  }
}

const feed = defineFeature("feed", (r) => {
  const everyone = { access: access.everyone };
  const list = r.query("entry.list", {
    route: "GET /entries",
    ...everyone,
    output: sse(entry),
    handler: async function* () {
      yield { data: { id: "1", text: "a", secret: "hidden" }, id: "1" };
      yield { data: { id: "2" }, id: "2", event: "second", retry: 500 };
    },
  });
  r.query("entry.lines", {
    route: "GET /lines",
    ...everyone,
    output: jsonLines(slowEntry),
    handler: async function* (): AsyncGenerator<Entry> {
      yield { id: "1", text: "a", secret: "hidden" } as Entry;
      yield { id: "2" };
    },
  });
  r.query("entry.follow", {
    route: "GET /follow",
    ...everyone,
    output: sse(entry, { heartbeatSeconds: 1 }),
    handler: () => following({ data: { id: "1" }, id: "1" }),
  });
  r.query("entry.misfit", {
    route: "GET /misfits/:kind/:when",
    ...everyone,
    output: sse(entry),
    handler: async function* (_ctx, input) {
      const { kind, when } = input as { kind: string; when: string };
      if (when === "later") {
        yield { data: { id: "1" } };
        await held.promise;
      }
      const items: Record<string, unknown> = {
        data: { data: { id: 7 } },
        id: { data: { id: "1" }, id: "a\nb" },
        none: "text",
      };
      yield items[kind] as { data: Entry };
    },
  });
  r.query("entry.after", {
    route: "GET /after",
    ...everyone,
    output: sse(z.object({ after: z.string().optional() })),
    handler: async function* ({ request }) {
      const after = request?.lastEventId;
      yield { data: after === undefined ? {} : { after } };
    },
  });
  r.query("entry.gone", {
    route: "GET /gone",
    ...everyone,
    status: [200, 204],
    output: sse(entry),
    handler: (ctx) =>
      ctx.request?.lastEventId === undefined
        ? new Response(null, { status: 204 })
        : (reply(undefined, { status: 204 }) as never), // without types
  });
  r.query("entry.headed", {
    route: "GET /headed",
    ...everyone,
    output: jsonLines(entry),
    handler: () =>
      reply(following<Entry>(), {
        headers: { "x-total": "0", "cache-control": "private" },
        cookies: { seen: { value: "1" } },
      }),
  });
  r.query("entry.whole", {
    route: "GET /whole",
    ...everyone,
    output: sse(entry),
    handler: () => [{ data: { id: "1" } }] as never,
  });
  return { list };
});

const server = () => buildServer({ features: [feed], environment: "test" });
let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server());
});
afterAll(() => app.close());

test("events have only declared fields, defaults, and the headers of a stream", async () => {
  const response = await app.fetch("/entries");
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(await response.text()).toBe(
    'id: 1\ndata: {"id":"1","text":"a"}\n\n' +
      'id: 2\nevent: second\nretry: 500\ndata: {"id":"2","text":"none"}\n\n',
  );
});

test("lines have only declared fields and defaults", async () => {
  const response = await app.fetch("/lines");
  expect(response.headers.get("content-type")).toBe("application/jsonl");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(await response.text()).toBe('{"id":"1","text":"a"}\n{"id":"2","text":"none"}\n');
});

test.each(["data", "id", "none"])("a first item with wrong %s is a 500", async (kind) => {
  const response = await app.fetch(`/misfits/${kind}/now`);
  expect(response.status).toBe(500);
  const error = kind === "id" ? "internal_error" : "response_mismatch";
  expect(await response.json()).toMatchObject({ error });
});

test.each(["data", "id", "none"])(
  "a later item with wrong %s breaks the stream off",
  async (kind) => {
    const response = await app.fetch(`/misfits/${kind}/later`);
    expect(response.status).toBe(200);
    held.resolve();
    await expect(response.text()).rejects.toThrow();
    await waitFor(() =>
      expect(app.logs.filter(({ msg }) => msg === "response.cut_off").length).toBeGreaterThan(0),
    );
  },
);

test("a result that is no stream is refused", async () => {
  expect((await app.fetch("/whole")).status).toBe(500);
});

test("a response may have no body, which stops browsers from connecting again", async () => {
  expect((await app.fetch("/gone")).status).toBe(204);
  expect((await app.fetch("/gone", { headers: { "last-event-id": "7" } })).status).toBe(204);
});

test("a reply's own headers, except the content type, are kept", async () => {
  held.resolve();
  const response = await app.fetch("/headed");
  expect([response.headers.get("x-total"), response.headers.get("cache-control")]).toEqual([
    ...["0", "private"],
  ]);
  expect(response.headers.get("content-type")).toBe("application/jsonl");
  expect(response.headers.get("set-cookie")).toContain("seen=1");
});

test("HEAD gets the headers, and closes the stream", async () => {
  const response = await app.fetch("/entries", { method: "HEAD" });
  expect([response.status, response.headers.get("content-type")]).toEqual([
    ...[200, "text/event-stream"],
  ]);
});

test.each([
  [undefined, {}],
  ["7", { after: "7" }],
  ["x".repeat(1_024), { after: "x".repeat(1_024) }],
  ["x".repeat(1_025), {}],
  [Buffer.from("ü…").toString("latin1"), { after: "ü…" }],
  ["\u00fc", { after: "\u00fc" }],
])("Last-Event-ID %j becomes ctx.request.lastEventId", async (id, data) => {
  const headers = id === undefined ? {} : { "last-event-id": id };
  expect(await (await app.fetch("/after", { headers })).text()).toBe(
    `data: ${JSON.stringify(data)}\n\n`,
  );
});

test("a client that leaves closes the handler's iterable", async () => {
  const response = await app.fetch("/follow");
  const reader = response.body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toContain("id: 1\n");
  await reader?.cancel();
  held.resolve();
  await waitFor(() => expect(closed).toEqual(["closed"]));
});

test("a stream sends comments while nothing happens", async () => {
  const reader = (await app.fetch("/follow")).body?.getReader();
  const read = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
  expect(await read()).toContain("id: 1\n");
  expect(await read()).toBe(":\n\n");
  await reader?.cancel();
});

test("in process, ctx.query returns the checked items", async () => {
  const items = await app.call(feed.list, {});
  expect(await allOf(items as AsyncIterable<unknown>)).toEqual([
    { data: { id: "1", text: "a" }, id: "1" },
    { data: { id: "2", text: "none" }, id: "2", event: "second", retry: 500 },
  ]);
});

test("a write cannot stream, and wrong options are boot problems", () => {
  const problems = (declare: Parameters<typeof defineFeature>[1]) => {
    try {
      buildServer({ features: [defineFeature("wrong", declare)] });
      return [];
    } catch (error) {
      return (error as { problems: { rule: string; message: string }[] }).problems;
    }
  };
  expect(
    problems((r) => {
      r.write("item.add", { output: sse(entry), handler: async function* () {} });
      r.query("item.list", {
        output: sse(entry, { heartbeatSeconds: 0 }),
        handler: async function* () {},
      });
      r.query("item.none", { output: sse(7 as never), handler: (() => {}) as never });
    }).map(({ rule, message }) => `${rule}: ${message}`),
  ).toEqual([
    "stream-output: `output` streams, and only a query can",
    "stream-output: `output` has a `heartbeatSeconds` that is not from 1 to 3,600",
    "schema: `output` is not a Standard Schema",
  ]);
});
