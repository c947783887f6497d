import { Logger as Powertools } from "@aws-lambda-powertools/logger";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { access } from "../../base/identity/access.ts";
import { currentContext } from "../../base/request/ambient.ts";
import type { IncomingTrace } from "../../base/request/trace.ts";
import { startTestApp, type TestApp, type TestFetchOptions } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { ServerOptions } from "../registry/options.ts";
import { buildServer } from "../server/server.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "followed.ended": { n: number };
  }
  interface Jobs {
    "followed.one.work": { n: number };
  }
}

const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "theirs=1" };
const ann = { id: "ann", tenantId: "acme" };

let failing = 0;
const followed = defineFeature("followed", (r) => {
  const handler = async (ctx: Parameters<Parameters<typeof r.query>[1]["handler"]>[0]) => {
    ctx.log.info("followed.here");
    const ambient = currentContext()?.trace;
    return {
      traceId: ctx.trace.traceId,
      sampled: ctx.trace.sampled,
      sent: ctx.trace.headers(),
      isSame: ambient === ctx.trace,
    };
  };
  r.query("one.known", { route: "GET /known", access: access.authenticated, handler });
  r.query("one.admin", { route: "GET /admin", access: access.admin, handler });
  r.query("one.open", { route: "GET /open", access: access.everyone, handler });
  r.event("followed.ended", z.object({ n: z.number() }));
  r.on("followed.ended", {
    name: "fail",
    handler: () => {
      failing -= 1;
      if (failing >= 0) throw new Error("not yet");
    },
  });
  r.job("one.work", {
    input: z.object({ n: z.number() }),
    handler: (ctx) => ctx.publish("followed.ended", { n: 1 }),
  });
  r.write("one.end", {
    route: "POST /end",
    access: access.authenticated,
    handler: async (ctx) => {
      await ctx.publish("followed.ended", { n: 1 });
      return null;
    },
  });
});

afterEach(() => {
  failing = 0;
  vi.restoreAllMocks();
});

async function start(options: Partial<ServerOptions<never>> = {}): Promise<TestApp> {
  const app = await startTestApp(
    buildServer({ features: [followed], log: { level: "debug" }, ...options } as ServerOptions),
  );
  onTestFinished(() => app.close());
  return app;
}

interface Answer {
  readonly traceId: string;
  readonly sampled: boolean;
  readonly sent: { readonly traceparent: string; readonly tracestate?: string };
  readonly isSame: boolean;
}

/** What a handler sees of its trace, or a refusal, and the trace of its lines. */
async function ask(app: TestApp, path: string, options: TestFetchOptions = {}) {
  const before = app.logs.length;
  const response = await app.fetch(path, { headers, ...options });
  const seen = (await response.json()) as Answer;
  const lines = new Set(app.logs.slice(before).map(({ trace_id }) => trace_id));
  return { status: response.status, seen, lines: [...lines] };
}

const joined = {
  traceId,
  sampled: true,
  sent: {
    traceparent: expect.stringMatching(`^00-${traceId}-(?!${spanId})[\\da-f]{16}-01$`),
    tracestate: "theirs=1",
  },
  isSame: true,
};
const expectOwn = ({ seen, lines }: Awaited<ReturnType<typeof ask>>) => {
  expect(seen.traceId).not.toBe(traceId);
  expect(seen).toEqual({
    traceId: expect.stringMatching(/^[\da-f]{32}$/),
    sampled: false,
    sent: { traceparent: expect.stringMatching(`^00-${seen.traceId}-[\\da-f]{16}-00$`) },
    isSame: true,
  });
  expect(lines).toEqual([seen.traceId]);
};

describe("By default,", () => {
  test("the trace of a caller who had to sign in is joined, and recorded if the caller records it", async () => {
    const app = await start();
    expect(await ask(app, "/known", { as: ann })).toEqual({
      status: 200,
      seen: joined,
      lines: [traceId],
    });
    const unrecorded = { traceparent: `00-${traceId}-${spanId}-00` };
    const { seen } = await ask(app, "/known", { as: ann, headers: unrecorded });
    expect(seen).toMatchObject({
      traceId,
      sampled: false,
      sent: { traceparent: expect.stringMatching(/-00$/) },
    });
    expect(seen.sent).not.toHaveProperty("tracestate");
  });

  test("callers who need not sign in choose neither the trace nor whether it is recorded, signed in or not", async () => {
    const app = await start();
    expectOwn(await ask(app, "/open"));
    expectOwn(await ask(app, "/open", { as: ann }));
  });

  test("a refusal's line is in the trace of a known caller, and in a new trace for any other", async () => {
    const app = await start();
    expect(await ask(app, "/admin", { as: ann })).toMatchObject({ status: 403, lines: [traceId] });
    for (const path of ["/known", "/nowhere"]) {
      const { lines } = await ask(app, path);
      expect(lines).toEqual([expect.stringMatching(/^[\da-f]{32}$/)]);
      expect(lines).not.toContain(traceId);
    }
  });

  test("requests without a trace get one each", async () => {
    const app = await start();
    const answers = [
      await ask(app, "/known", { as: ann, headers: {} }),
      await ask(app, "/known", { as: ann, headers: {} }),
    ];
    for (const answer of answers) expectOwn(answer);
    expect(new Set(answers.map(({ seen }) => seen.traceId)).size).toBe(2);
  });
});

describe("trace.incoming", () => {
  test.each([
    ["trust", "/open", undefined],
    ["trust", "/known", ann],
  ] as const)("%s joins the trace of any caller: %s", async (incoming, path, as) => {
    expect(
      await ask(await start({ trace: { incoming } }), path, { ...(as && { as }) }),
    ).toMatchObject({
      seen: joined,
      lines: [traceId],
    });
  });

  test.each<IncomingTrace>(["link", "ignore"])("%s starts a new trace", async (incoming) => {
    expectOwn(await ask(await start({ trace: { incoming } }), "/known", { as: ann }));
  });
});

test("a line written before the caller is known gives the whole request a trace of its own", async () => {
  const app = await start();
  expectOwn(
    await ask(app, "/known", { as: ann, headers: { ...headers, "x-request-id": "not one" } }),
  );
});

test("two tracestate headers are joined, and two traceparent headers are ignored", async () => {
  const app = await start();
  const list = (name: string, values: readonly string[]) =>
    values.map((value): [string, string] => [name, value]);
  const token = await app.token(ann);
  const asked = async (...lists: [string, string][][]) => {
    const url = await app.fetch("/known", { as: ann }).then(({ url }) => url);
    const answer = await fetch(url, {
      headers: [["authorization", `Bearer ${token}`], ...lists.flat()],
    });
    return (await answer.json()) as Answer;
  };
  const states = list("tracestate", ["a=1,b=2", "c=3"]);
  expect((await asked([["traceparent", headers.traceparent]], states)).sent.tracestate).toBe(
    "a=1,b=2,c=3",
  );
  const twice = list("traceparent", [headers.traceparent, headers.traceparent]);
  expect((await asked(twice, states)).traceId).not.toBe(traceId);
});

test("lines of an application's own Powertools Logger include the trace", async () => {
  const printed: Record<string, unknown>[] = [];
  const powertools = new Powertools({ serviceName: "followed" });
  vi.spyOn(powertools, "info").mockImplementation(
    (...[, attributes]) => void printed.push(attributes as Record<string, unknown>),
  );
  const server = buildServer({ features: [followed], log: { powertools }, environment: "test" });
  const { createRuntime } = await import("../server/create-runtime.ts");
  const { runInScope } = await import("../runtime/scope.ts");
  const runtime = createRuntime(server, {
    variables: {},
    openAdapters: () => Promise.reject(new Error("nothing is opened")),
  });
  await runInScope(runtime, { headers: {}, signal: undefined }, async ({ log, trace }) => {
    log.info("followed.printed");
    expect(printed).toEqual([
      expect.objectContaining({ msg: "followed.printed", trace_id: trace.traceId }),
    ]);
  });
});

test("a message has its trace in every line: when it fails, is redelivered and is given up", async () => {
  const app = await start();
  failing = Number.POSITIVE_INFINITY;
  await app.fetch("/end", { method: "POST", as: ann, headers });
  await app.settled().catch(() => undefined); // it says that the event went to the dead-letter queue
  for (const msg of ["event.published", "event.failed", "queue.retry", "queue.dead_lettered"]) {
    const lines = app.logs.filter((line) => line["msg"] === msg);
    expect(lines.length).toBeGreaterThan(0);
    expect(new Set(lines.map(({ trace_id }) => trace_id))).toEqual(new Set([traceId]));
  }
  // And of what, and where it comes from.
  const ofWhat = (msg: string) =>
    app.logs
      .filter((line) => line["msg"] === msg)
      .map(({ eventId, origRequestId, causedBy, tenantId }) => [
        eventId,
        origRequestId,
        causedBy,
        tenantId,
      ]);
  const [letter = []] = ofWhat("queue.dead_lettered");
  expect(letter).toEqual([expect.any(String), expect.any(String), expect.any(String), "acme"]);
  for (const retried of ofWhat("queue.retry")) expect(retried).toEqual(letter);
});

test("work without a request gets a trace of its own and passes it on", async () => {
  const server = buildServer({ features: [followed], log: { level: "debug" } });
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  const ctx = await app.ctx(ann, { handler: "followed.one.end" });
  await ctx.enqueue("followed.one.work", { n: 1 });
  await app.settled();
  const lines = app.logs.filter(
    ({ handler }) => handler === "followed.one.work" || handler === "followed.followed.fail",
  );
  expect(lines.length).toBeGreaterThan(1);
  expect(new Set(lines.map(({ trace_id }) => trace_id))).toEqual(new Set([ctx.trace.traceId]));
});
