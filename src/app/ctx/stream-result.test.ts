import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { allOf } from "../../../test/support/all-of.ts";
import { access } from "../../base/identity/access.ts";
import { jsonLines, sse } from "../../parts/http/streamed-output.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

/** Waits for events that do not come, until its signal aborts. */
async function* waiting(signal: AbortSignal | undefined) {
  try {
    yield 1;
    await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  } finally {
    left.resolve("left");
  }
}
let left = Promise.withResolvers<string>();
beforeEach(() => {
  left = Promise.withResolvers();
});

const feed = defineFeature("feed", (r) => {
  r.query("entry.follow", {
    route: "GET /follow",
    access: access.everyone,
    output: sse(z.number()),
    handler: async function* () {
      yield { data: 1 };
      await new Promise(() => {});
    },
  });
  r.query("entry.wait", {
    route: "GET /wait",
    access: access.everyone,
    output: sse(z.number()),
    handler: async function* ({ signal }) {
      for await (const data of waiting(signal)) yield { data };
    },
  });
  r.query("entry.export", {
    route: "GET /export",
    access: access.everyone,
    output: jsonLines(z.number()),
    handler: ({ signal }) => waiting(signal),
  });
});

type Facts = Parameters<ReturnType<typeof hostless>["ask"]>[1];

const follow = async (facts: Facts = {}, route = "GET /follow") => {
  const { runtime, ask } = hostless(buildServer({ features: [feed] }));
  const { body } = await ask(route, facts);
  const chunks = (body as ReadableStream<Uint8Array>)[Symbol.asyncIterator](); // safe: a stream
  const read = async () => {
    const { done, value } = await chunks.next();
    return done ? "over" : Buffer.from(value).toString();
  };
  return { runtime, read, leave: () => chunks.return?.() };
};
const retry = /^retry: [123]\d{3}\n\n$/;

test("a stream ends with a retry when the process drains, and one that begins later at once", async () => {
  const { runtime, read } = await follow();
  expect(await read()).toBe("data: 1\n\n");
  const next = read();
  runtime.lifecycle.drain();
  expect(await next).toMatch(retry);
  expect(await read()).toBe("over");

  const late = hostless(buildServer({ features: [feed] }));
  late.runtime.lifecycle.drain();
  const { body } = await late.ask("GET /follow");
  const [only, ...others] = await allOf(body as ReadableStream<Uint8Array>); // safe: a stream
  expect(Buffer.from(only ?? []).toString()).toMatch(retry);
  expect(others).toEqual([]);
});

test.each([
  ["long before the end of a long time", 1_100],
  ["in the middle of a short time", 100],
])("a stream ends with a retry before its time is over: %s", async (_name, leftMs) => {
  const deadlineMs = Date.now() + leftMs;
  const { read } = await follow({ deadlineMs });
  expect(await read()).toBe("data: 1\n\n");
  expect(await read()).toMatch(retry);
  expect(Date.now()).toBeLessThan(deadlineMs + 60_000);
  expect(await read()).toBe("over");
});

test.each([undefined, new AbortController().signal])(
  "a handler that waits for the next event sees its signal abort when the process drains (its caller's signal: %s)",
  async (signal) => {
    const { runtime, read } = await follow({ signal }, "GET /wait");
    expect(await read()).toBe("data: 1\n\n");
    const next = read();
    runtime.lifecycle.drain();
    expect(await next).toMatch(retry);
    expect(await left.promise).toBe("left");
  },
);

test.each([
  ["GET /wait", "data: 1\n\n"],
  ["GET /export", "1\n"],
])(
  "%s: a handler that waits sees its signal abort when the rest of its body is not wanted",
  async (route, first) => {
    const { read, leave } = await follow({}, route);
    expect(await read()).toBe(first);
    await leave();
    expect(await left.promise).toBe("left");
  },
);

test("the caller's signal aborts the run of a stream", async () => {
  const caller = new AbortController();
  const { read } = await follow({ signal: caller.signal }, "GET /wait");
  expect(await read()).toBe("data: 1\n\n");
  caller.abort(new Error("gone"));
  expect(await left.promise).toBe("left");
});
