// One trace from a request to all that follows from it, on both hosts.
import { access, buildServer, currentContext, defineFeature, type PipelineContext } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { rebuild } from "../../src/app/run/rebuild.ts";
import type { Runtime } from "../../src/app/runtime/runtime.ts";
import { serverInternals } from "../../src/app/server/server.ts";
import { lambdaHost, receiveHooks } from "../fixtures/traced-hosts.ts";

declare module "keelson" {
  interface Events {
    "traced-parcel.sent": { id: string };
  }
  interface Jobs {
    "tracing.parcel.carry": { id: string };
    "tracing.parcel.remind": { id: string };
  }
}

type Line = Readonly<Record<string, unknown>>;

const ann = { id: "ann", tenantId: "acme" };
const parent = (at: number) => ({
  traceId: at.toString(16).padStart(32, "a"),
  spanId: at.toString(16).padStart(16, "b"),
});
const headersOf = (at: number) => {
  const { traceId, spanId } = parent(at);
  return { traceparent: `00-${traceId}-${spanId}-01`, tracestate: `theirs=${at}` };
};

let receiver: Awaited<ReturnType<typeof receiveHooks>>;

/** Lets nobody through before all are there. */
function createGate(count: number) {
  const { promise, resolve } = Promise.withResolvers<void>();
  let here = 0;
  return {
    come: () => {
      here += 1;
      if (here === count) resolve();
      return promise;
    },
  };
}
let gate = createGate(0);

/** Which headers each run would have sent, by where it was. */
const sent: {
  readonly where: string;
  readonly id: string;
  readonly trace: ReturnType<PipelineContext["trace"]["headers"]>;
}[] = [];
const note = (ctx: Pick<PipelineContext, "log" | "trace">, where: string, id: string) => {
  ctx.log.info("tracing.here", { where, id });
  sent.push({ where, id, trace: ctx.trace.headers() });
};

const tracing = defineFeature("tracing", (r) => {
  const parcel = z.object({ id: z.string() });
  r.query("parcel.show", {
    route: "GET /parcels/:id",
    access: access.authenticated,
    input: parcel,
    handler: async (ctx, { id }) => {
      ctx.log.info("tracing.came", { id });
      await gate.come();
      ctx.log.info("tracing.goes", { id });
      return { traceId: ctx.trace.traceId, ambient: currentContext()?.trace.traceId };
    },
  });
  r.event("traced-parcel.sent", parcel, { keepDays: 1 });
  r.write("parcel.send", {
    route: "POST /parcels/:id",
    access: access.authenticated,
    input: parcel,
    handler: async (ctx, { id }) => {
      note(ctx, "request", id);
      await ctx.publish("traced-parcel.sent", { id });
      await ctx.enqueue("tracing.parcel.remind", { id }, { delaySeconds: 0 });
      return { traceId: ctx.trace.traceId };
    },
  });
  r.on("traced-parcel.sent", {
    name: "forward",
    handler: async (ctx, { payload: { id } }) => {
      note(ctx, "consumer", id);
      await ctx.enqueue("tracing.parcel.carry", { id });
    },
  });
  r.projection("tracing.count", {
    version: 1,
    on: {
      "traced-parcel.sent": (ctx, { payload: { id } }) => {
        note(ctx, "projection", id);
        return [];
      },
    },
  });
  r.job("parcel.carry", {
    input: parcel,
    handler: async (ctx, { id }) => {
      note(ctx, "job", id);
      await ctx.delivery.send("webhook", { url: receiver.url, body: { id } });
    },
  });
  r.job("parcel.remind", { input: parcel, handler: (ctx, { id }) => note(ctx, "later", id) });
});
const build = () =>
  buildServer({
    features: [tracing],
    delivery: { webhook: { allowHttp: true, allowPrivate: true } },
    log: { level: "debug" },
  });

const server = build();
let app: TestApp;
const printed: Line[] = [];
beforeAll(async () => {
  receiver = await receiveHooks();
  app = await startTestApp(server, { webhooks: { allowHttp: true, allowPrivate: true } });
});
afterAll(async () => {
  await app.close();
  await receiver.close();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

test("a rebuild replays each event in the trace of its publication", async () => {
  const { registry, bound } = serverInternals(server);
  const projection = registry.projections.get("tracing.count");
  const [at, before] = [2_000, sent.length];
  await container().ask("POST", at);
  await app.settled();
  const { traceparent } =
    sent.slice(before).find(({ where }) => where === "projection")?.trace ?? {};
  // Safe: the test app has bound it, and it declares the projection.
  await rebuild((await bound?.()) as Runtime, {
    projection: projection as NonNullable<typeof projection>,
  });
  const replayed = sent
    .filter(({ where, id }) => where === "projection" && id === String(at))
    .map(({ trace }) => trace);
  expect(replayed.map((trace) => trace.traceparent.slice(3, 35))).toEqual([
    parent(at).traceId,
    parent(at).traceId,
  ]);
  expect(new Set([...replayed.map((trace) => trace.traceparent), traceparent]).size).toBe(2);
});

/** How a parcel is sent and everything that follows is done; the lines come from there. */
interface Host {
  ask(method: "GET" | "POST", at: number): Promise<unknown>;
  finish(): Promise<void>;
  lines(): readonly Line[];
}

const container = (): Host => ({
  ask: async (method, at) =>
    (await app.fetch(`/parcels/${at}`, { method, as: ann, headers: headersOf(at) })).json(),
  finish: () => app.settled(),
  lines: () => app.logs,
});

const lambda = (): Host => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.stubEnv("AWS_LAMBDA_FUNCTION_NAME", undefined);
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    for (const line of String(text).trim().split("\n")) printed.push(JSON.parse(line) as Line);
    return true;
  });
  const { ask, finish } = lambdaHost(app, build(), ann);
  return {
    ask: (method, at) => ask(method, `/parcels/${at}`, headersOf(at)),
    finish,
    lines: () => printed,
  };
};

/** Everything that a parcel leads to. */
const places = ["consumer", "job", "later", "projection", "request"];

describe.each([
  ["the container", container, 0],
  ["Lambda", lambda, 1_000],
])("on %s", (_, start, first) => {
  test("a request, its consumers, a projection, immediate and delayed jobs, and the webhook target share one trace", async () => {
    const host = start();
    const all = [first, first + 1, first + 2];
    const answers = await Promise.all(all.map((at) => host.ask("POST", at)));
    expect(answers).toEqual(all.map((at) => ({ traceId: parent(at).traceId })));
    await host.finish();
    for (const at of all) {
      const [id, { traceId }] = [String(at), parent(at)];
      const own = sent.filter((one) => one.id === id);
      expect(own.map(({ where }) => where).sort()).toEqual(places);
      for (const { trace } of own) {
        expect(trace.traceparent).toMatch(new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`));
        expect(trace.tracestate).toBe(`theirs=${at}`);
      }
      // Each run is a place of its own in the trace.
      expect(
        new Set([...own.map(({ trace }) => trace.traceparent), headersOf(at).traceparent]).size,
      ).toBe(places.length + 1);
      const [hook, ...more] = receiver.hooks.filter((one) => one.id === id);
      expect(more).toEqual([]);
      expect(String(hook?.headers["traceparent"])).toMatch(
        new RegExp(`^00-${traceId}-[\\da-f]{16}-01$`),
      );
      expect(hook?.headers).not.toHaveProperty("tracestate");
      const { requestId } = host.lines().find((line) => line["id"] === id) ?? {};
      const lines = host.lines().filter((line) => line["requestId"] === requestId);
      expect(lines.length).toBeGreaterThan(10);
      expect(lines.filter(({ trace_id }) => trace_id !== traceId)).toEqual([]);
    }
  });

  test("of 200 concurrent requests none has a line in another's trace", async () => {
    const host = start();
    const all = Array.from({ length: 200 }, (_, index) => first + 100 + index);
    gate = createGate(all.length);
    const answers = await Promise.all(all.map((at) => host.ask("GET", at)));
    expect(answers).toEqual(
      all.map((at) => ({ traceId: parent(at).traceId, ambient: parent(at).traceId })),
    );
    const expected = new Map(all.map((at) => [String(at), parent(at).traceId]));
    const lines = host
      .lines()
      .filter(
        ({ msg, id }) => /^tracing\.(came|goes)$/.test(String(msg)) && expected.has(String(id)),
      );
    expect(lines).toHaveLength(all.length * 2);
    expect(lines.filter(({ id, trace_id }) => trace_id !== expected.get(String(id)))).toEqual([]);
  });
});
