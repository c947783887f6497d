import middy from "@middy/core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import type { EmbeddedStack } from "../../embedded/stack/index.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { type AdoptedContext, requestScope, writeOnce } from "./middy.ts";

const feature = defineFeature("legacy", (r) => {
  const table = r.table("answers", { partitionKey: "pk", tenant: false });
  r.event("order.created", z.object({ n: z.number() }));
  return { table };
});

let stack: Pick<EmbeddedStack, "env" | "close">;
let logs: Record<string, unknown>[] = [];
const unhandled = vi.fn();

beforeAll(async () => {
  stack = await startTestApp(buildServer({ features: [feature] })); // makes the tables
  process.on("unhandledRejection", unhandled);
});
afterAll(async () => {
  process.off("unhandledRejection", unhandled);
  await stack.close();
});
beforeEach(() => {
  logs = [];
  unhandled.mockClear();
  for (const [name, value] of Object.entries(stack.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockImplementation((line) => {
    logs.push(JSON.parse(String(line)) as Record<string, unknown>);
    return true;
  });
});
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve)); // the turn in which a rejection that nobody handled is told
  expect(unhandled).not.toHaveBeenCalled();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

type Result = {
  statusCode: number;
  headers: Record<string, string>;
  body?: string;
  cookies?: string[];
};

/** A function around an existing handler, called with an event of an HTTP API. */
function adopted(
  existing: (event: unknown, context: AdoptedContext) => unknown,
  use: middy.MiddlewareObj[] = [writeOnce()],
) {
  const mode = requestScope(buildServer({ features: [feature] }), {
    handler: "legacy.order.create",
    access: access.everyone,
  });
  const handler = middy({ executionMode: mode })
    .use(use)
    .handler(existing as never);
  return async (headers: Record<string, string> = {}, method = "POST") => {
    const requestContext = { http: { method, sourceIp: "127.0.0.1" }, stage: "$default" };
    const event = {
      version: "2.0",
      rawPath: "/orders",
      rawQueryString: "",
      headers,
      requestContext,
      body: "{}",
    };
    return (await handler(event as never, {} as never)) as unknown as Result;
  };
}

let keys = 0;
const withKey = () => ({ "idempotency-key": `key-${++keys}` });
const circle: Record<string, unknown> = {};
circle["self"] = circle;

test.each([
  ["no body", { statusCode: 204, body: null }, 204],
  ["a number as its body", { statusCode: 200, body: 7 }, 200],
  ["an object as its body", { statusCode: 200, body: { a: 1 } }, 200],
  [
    "null wherever it can be",
    { statusCode: 200, headers: null, multiValueHeaders: null, cookies: null, body: null },
    200,
  ],
  ["its status as text", { statusCode: "201", body: "a" }, 201],
  ["a strange isBase64Encoded", { statusCode: 200, body: "a", isBase64Encoded: "maybe" }, 200],
])(
  "accepts a response with %s, with a claim, without one, and early",
  async (_what, result, status) => {
    let effects = 0;
    const claimed = adopted(async () => {
      effects += 1;
      return result;
    });
    const headers = withKey();
    const answers = [await claimed(headers), await claimed(headers), await claimed(headers)];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([status, status, status]);
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
    expect(effects).toBe(1);

    const plain = await adopted(async () => result, [])();
    const early = await adopted(async () => 1, [{ before: () => result }])();
    const earlyClaimed = await adopted(
      async () => 1,
      [writeOnce(), { before: () => result }],
    )(withKey());
    for (const answer of [plain, early, earlyClaimed])
      expect([answer.statusCode, answer.body]).toEqual([status, answers[0]?.body]);
  },
);

test.each([
  ["a body that JSON does not have", { statusCode: 201, body: circle }],
  ["a status that is none", { statusCode: 1, body: "a" }],
  ["headers that are no object", { statusCode: 201, headers: "a: b" }],
])(
  "when a handler answers with %s, all requests with its key get the same 500, and it runs once",
  async (_w, result) => {
    let effects = 0;
    const call = adopted(async () => {
      effects += 1;
      return result;
    });
    const headers = withKey();
    const answers = [await call(headers), await call(headers), await call(headers)];
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([500, 500, 500]);
    expect(answers.map(({ headers }) => headers["idempotent-replayed"])).toEqual([
      undefined,
      "true",
      "true",
    ]);
    expect(answers.map(({ body }) => body)).toEqual(answers.map(() => answers[0]?.body));
    expect(JSON.parse(answers[0]?.body ?? "")).toMatchObject({
      error: "internal_error",
      requestId: answers[0]?.headers["x-request-id"],
    });
    expect(effects).toBe(1);
    const failed = logs.filter(({ msg }) => msg === "request.failed");
    expect(failed).toHaveLength(1);
    expect(failed[0]?.["message"]).toContain("the result's");
  },
);

test("concurrent duplicates in one process share the 500 of a handler with an invalid response", async () => {
  let effects = 0;
  const call = adopted(async () => {
    effects += 1;
    return { statusCode: 0 };
  });
  const headers = withKey();
  const answers = await Promise.all([call(headers), call(headers), call(headers)]);
  expect([...answers.map(({ statusCode }) => statusCode), effects]).toEqual([500, 500, 500, 1]);
});

test("publishes a handler's events even when its response is invalid, with a claim and without one", async () => {
  const call = adopted(async (_event, { keelson: ctx }) => {
    await ctx.publish("order.created" as never, { n: 1 } as never);
    return { statusCode: 201, body: circle };
  });
  const answers = [await call(withKey()), await call()];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([500, 500]);
  expect(logs.filter(({ msg }) => msg === "event.published")).toHaveLength(2);
});

test("refuses to commit an invalid response before anything is written", async () => {
  let refused: unknown;
  const call = adopted(async (_event, { keelson: ctx }) => {
    const put = { Put: { TableName: feature.table.name, Item: { pk: ctx.requestId } } };
    refused = await ctx.commit([put], { statusCode: 1 }).catch((error: unknown) => error);
    return { statusCode: 200 };
  });
  expect((await call(withKey())).statusCode).toBe(200);
  expect(String(refused)).toContain("statusCode is 1");
});

test("answers 500 to an invalid response without a claim, from the handler or a middleware", async () => {
  expect((await adopted(async () => ({ statusCode: 1 }), [])()).statusCode).toBe(500);
  expect(
    (await adopted(async () => 1, [{ before: () => ({ statusCode: 200, body: circle }) }])())
      .statusCode,
  ).toBe(500);
  const spoils: middy.MiddlewareObj = { after: () => ({ statusCode: 1 }) };
  expect((await adopted(async () => ({ statusCode: 200 }), [spoils])()).statusCode).toBe(500);
});

test("replaces a stale Content-Length with the length of the body that is sent", async () => {
  const lengthOf = async (result: object, method = "POST") =>
    (await adopted(async () => ({ headers: { "Content-Length": "3" }, ...result }), [])({}, method))
      .headers["content-length"];
  expect(await lengthOf({ statusCode: 200, body: "größer" })).toBe("8");
  expect(await lengthOf({ statusCode: 200, body: "AAEC\nAw==", isBase64Encoded: true })).toBe("4");
  expect(await lengthOf({ statusCode: 204 })).toBeUndefined();
  expect(await lengthOf({ statusCode: 304 })).toBe("3");
  expect(await lengthOf({ statusCode: 200 }, "HEAD")).toBe("3");
});

test("cookies of every spelling and place reach the client, and headers without a value are left out", async () => {
  const answer = await adopted(
    async () => ({
      statusCode: 200,
      headers: { "Set-Cookie": "a=1", "set-cookie": "b=2", "X-None": undefined, "X-Null": null },
      multiValueHeaders: { "Set-Cookie": ["c=3"] },
      cookies: ["d=4"],
    }),
    [],
  )();
  expect(answer.cookies?.toSorted()).toEqual(["a=1", "b=2", "c=3", "d=4"]);
  expect(Object.keys(answer.headers)).toEqual(["x-request-id", "x-content-type-options"]);
});
