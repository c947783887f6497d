import { expect, test } from "vitest";
import { z } from "zod";
import { hostless } from "../../../test/fixtures/hostless.ts";
import { allOf } from "../../../test/support/all-of.ts";
import { access } from "../../base/identity/access.ts";
import { sse } from "../../parts/http/streamed-output.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";

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
});

const follow = async (facts: { deadlineMs?: number } = {}) => {
  const { runtime, ask } = hostless(buildServer({ features: [feed] }));
  const { body } = await ask("GET /follow", facts);
  const chunks = (body as ReadableStream<Uint8Array>)[Symbol.asyncIterator](); // safe: a stream
  const read = async () => {
    const { done, value } = await chunks.next();
    return done ? "over" : Buffer.from(value).toString();
  };
  return { runtime, read };
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
