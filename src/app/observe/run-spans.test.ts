import {
  type Context,
  context,
  createContextKey,
  propagation,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import * as first from "otel-api-first";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { ConflictError, PermanentError } from "../../base/errors/errors.ts";
import { access } from "../../base/identity/access.ts";
import { createRandomDigits } from "../../base/request/trace.ts";
import { createTenantConfig } from "../../parts/config/declare/declaration.ts";
import type { Run } from "../../parts/once/claimed-run.ts";
import { startTestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import type { PipelineContext } from "../handlers/pipeline-context.ts";
import type { ServerOptions } from "../registry/options.ts";
import { runInScope } from "../runtime/scope.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { headersOf, remoteSpan } from "./tracer.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "observed.ended": { n: number };
  }
  interface Jobs {
    "observed.one.work": { n: number };
  }
}

const ann = { id: "ann", tenantId: "acme" };
const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "theirs=1,others=2" };

let exporter = new InMemorySpanExporter();
let work: (ctx: PipelineContext) => unknown = () => undefined;
const observed = defineFeature("observed", (r) => {
  r.query("one.show", {
    route: "GET /one/:id",
    access: access.authenticated,
    handler: (ctx) => work(ctx as PipelineContext), // safe: its work only reads
  });
  r.write("one.do", {
    route: "POST /one",
    access: access.authenticated,
    once: { required: true },
    handler: (ctx) => work(ctx),
  });
  const n = z.object({ n: z.number() });
  r.event("observed.ended", n);
  r.schedule("one.tick", { cron: "0 0 1 1 *", handler: (ctx) => void work(ctx) });
  const config = r.config({ keys: { limit: createTenantConfig("number", { default: 7 }) } });
  r.job("one.work", { input: n, handler: (ctx) => work(ctx) });
  return { config };
});

afterEach(() => {
  work = () => undefined;
  for (const api of [trace, context, propagation]) api.disable();
  // Each copy of the API refuses to register anything beside what another version has.
  Reflect.deleteProperty(globalThis, Symbol.for("opentelemetry.js.api.1"));
});

interface Registered {
  readonly sampler?: Sampler;
  readonly hasContexts?: boolean;
}

/** Registers an SDK, and starts an app. */
async function start(
  { sampler, hasContexts = true }: Registered = {},
  options: Partial<ServerOptions<never>> = {},
) {
  exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    ...(sampler && { sampler }),
  });
  trace.setGlobalTracerProvider(provider);
  if (hasContexts) context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  return { app: await startApp(options), tracer: provider.getTracer("test") };
}

async function startApp(options: Partial<ServerOptions<never>> = {}) {
  const app = await startTestApp(
    buildServer({ features: [observed], ...options } as ServerOptions),
  );
  onTestFinished(() => app.close());
  return app;
}

const spans = () => exporter.getFinishedSpans();
const one = (name: string): ReadableSpan => {
  const found = spans().filter((span) => span.name === name);
  expect(
    found,
    spans()
      .map((span) => span.name)
      .join(),
  ).toHaveLength(1);
  return found[0] as ReadableSpan; // safe: as just expected
};

/** Runs a request in this process, inside of what is active. */
async function inProcess(
  given: (ctx: { readonly traceId: string; readonly sent: string }) => unknown,
  inside: Context,
) {
  const server = buildServer({ features: [observed] });
  const app = await startTestApp(server);
  onTestFinished(() => app.close());
  const runtime = await serverInternals(server).bound?.();
  if (runtime === undefined) throw new Error("it is not bound");
  return context.with(inside, () =>
    runInScope(runtime, { headers, signal: undefined }, async (scope) => {
      scope.route = "GET /one/:id";
      scope.spans?.routed();
      given({ traceId: scope.trace.traceId, sent: scope.trace.headers().traceparent });
      runtime.observer?.ended(scope, {
        kind: "request",
        method: "GET",
        status: 200,
        bytes: 0,
        isAborted: false,
      });
    }),
  );
}

describe("inside a span of the process", () => {
  const inside = (tracer: Tracer) => {
    const outer = tracer.startSpan("invocation", { kind: SpanKind.SERVER });
    return { outer, active: trace.setSpan(context.active(), outer) };
  };

  test("such as an invocation's, a request has an inner span and no second server span", async () => {
    const { tracer } = await start();
    const { outer, active } = inside(tracer);
    await inProcess(({ traceId }) => expect(traceId).toBe(outer.spanContext().traceId), active);
    const span = one("GET /one/:id");
    expect([span.kind, span.parentSpanContext?.spanId]).toEqual([
      SpanKind.INTERNAL,
      outer.spanContext().spanId,
    ]);
  });

  test("of Node's HTTP instrumentation, the request uses that server span, which gets the route and is not ended", async () => {
    const { tracer } = await start();
    const { outer, active } = inside(tracer);
    const metadata: { type: string; route?: string } = { type: "http" };
    const key = createContextKey("OpenTelemetry SDK Context Key RPC_METADATA");
    await inProcess(
      ({ sent }) => expect(sent).toContain(outer.spanContext().spanId),
      active.setValue(key, metadata),
    );
    expect(metadata.route).toBe("/one/:id");
    expect(spans()).toEqual([]);
    expect(outer.isRecording()).toBe(true);
  });

  test("a message's span is a child of its originator's, linked to that and to the receiving span", async () => {
    const { app, tracer } = await start();
    const ctx = await app.ctx(ann, { handler: "observed.one.do" });
    await ctx.enqueue("observed.one.work", { n: 1 });
    const { outer, active } = inside(tracer);
    await context.with(active, () => app.settled());
    const [span, sent] = [one("process observed.one.work"), one("enqueue observed.one.work")];
    expect(span.parentSpanContext?.spanId).toBe(sent.spanContext().spanId);
    expect(span.links.map((link) => link.context.spanId)).toEqual([
      sent.spanContext().spanId,
      outer.spanContext().spanId,
    ]);
  });
});

test("a traced request that asks for it is told which configuration it read", async () => {
  const { app } = await start();
  const response = await app.fetch("/one/1", {
    as: { ...ann, roles: ["systemAdmin"] },
    headers: { ...headers, "x-keelson-explain": "config" },
  });
  expect([response.status, response.headers.get("x-keelson-config")]).toEqual([204, "none"]);
  one("GET /one/:id");
});

test("a handler's active span is the request's: applications add to it, and only keelson ends it", async () => {
  const { app, tracer } = await start();
  const other = tracer.startSpan("other").spanContext();
  work = () => {
    const span = trace.getActiveSpan();
    span
      ?.setAttributes({ "app.a": 1 })
      .setAttribute("app.b", 2)
      .addEvent("app.event")
      .addLink({ context: other })
      .addLinks([{ context: other }])
      .setStatus({ code: SpanStatusCode.OK })
      .updateName("app.name");
    span?.recordException(new Error("app.error"));
    span?.end();
    return { isRecording: span?.isRecording() };
  };
  expect(await (await app.fetch("/one/1", { as: ann, headers })).json()).toEqual({
    isRecording: true,
  });
  const span = one("GET /one/:id");
  expect(span.attributes).toMatchObject({ "app.a": 1, "app.b": 2 });
  expect(span.events.map(({ name }) => name)).toEqual(["app.event", "exception"]);
  expect(span.links).toHaveLength(2);
});

test("spans have their parents without a context manager, and outgoing calls carry the request's span", async () => {
  const sampler: Sampler = {
    shouldSample: (given) => {
      // Contexts are what an SDK takes them for.
      expect(trace.getSpan(trace.deleteSpan(given))).toBeUndefined();
      return { decision: SamplingDecision.RECORD_AND_SAMPLED };
    },
    toString: () => "test",
  };
  const { app } = await start({ sampler, hasContexts: false });
  work = async (ctx) => {
    await ctx.step("call", { ifUnknown: "retry" }, () => 1);
    return { sent: ctx.trace.headers().traceparent };
  };
  const answer = await app.fetch("/one", {
    method: "POST",
    as: ann,
    headers: { ...headers, "idempotency-key": "a" },
  });
  const server = one("POST /one");
  expect(await answer.json()).toEqual({ sent: `00-${traceId}-${server.spanContext().spanId}-01` });
  expect(
    [server, one("claim"), one("step call")].map((span) => span.parentSpanContext?.spanId),
  ).toEqual([spanId, server.spanContext().spanId, server.spanContext().spanId]);
});

test("an unsampled request still has a trace, marked as not sampled", async () => {
  const { app } = await start({ sampler: new AlwaysOffSampler() });
  work = (ctx) => {
    ctx.log.info("observed.here");
    return { sampled: ctx.trace.sampled, ...ctx.trace.headers() };
  };
  const answer = (await (await app.fetch("/one/1", { as: ann, headers })).json()) as {
    readonly traceparent: string;
  };
  expect(answer).toMatchObject({ sampled: false, tracestate: headers.tracestate });
  expect(answer.traceparent).toMatch(new RegExp(`^00-${traceId}-(?!${spanId})[\\da-f]{16}-00$`));
  expect(app.logs.find(({ msg }) => msg === "observed.here")).toMatchObject({ trace_id: traceId });
  expect(spans()).toEqual([]);
});

test("a sampler reads the caller's tracestate and may change it", async () => {
  const seen: unknown[] = [];
  const sampler: Sampler = {
    shouldSample: (given) => {
      const state = trace.getSpan(given)?.spanContext().traceState;
      seen.push(state?.get("theirs"), state?.get("nobodys"));
      const traceState = state?.set("ours", "3").unset("others");
      return { decision: SamplingDecision.RECORD_AND_SAMPLED, ...(traceState && { traceState }) };
    },
    toString: () => "test",
  };
  const { app } = await start({ sampler });
  work = (ctx) => ({ sent: ctx.trace.headers().tracestate });
  expect(await (await app.fetch("/one/1", { as: ann, headers })).json()).toEqual({
    sent: "ours=3,theirs=1",
  });
  expect(seen).toEqual(["1", undefined]);
});

test("requests keep their own traces when a provider makes no spans", async () => {
  trace.setGlobalTracerProvider({
    getTracer: () =>
      ({
        startSpan: () =>
          trace.wrapSpanContext({ traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 }),
      }) as never,
  });
  const app = await startApp();
  work = (ctx) => ({ sent: ctx.trace.headers().traceparent });
  expect(await (await app.fetch("/one/1", { as: ann, headers })).json()).toEqual({
    sent: expect.stringMatching(`^00-${traceId}-(?!0{16})[\\da-f]{16}-01$`),
  });
});

test("uses an SDK registered with an older copy of the API, and does not import a newer one", async () => {
  exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  first.trace.setGlobalTracerProvider(provider as never);
  first.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable() as never);
  const app = await startApp();
  work = () => ({ active: first.trace.getSpan(first.context.active())?.spanContext().spanId });
  const answer = await app.fetch("/one/1", { as: ann, headers });
  expect(await answer.json()).toEqual({ active: one("GET /one/:id").spanContext().spanId });
});

test("an inner span's error is recorded there alone, and a refusal is no server failure", async () => {
  const { app } = await start();
  work = async (ctx) => {
    await ctx.step("call", { ifUnknown: "retry" }, () => {
      throw new ConflictError("observed_late", "It is too late");
    });
  };
  const answer = await app.fetch("/one", {
    method: "POST",
    as: ann,
    headers: { ...headers, "idempotency-key": "b" },
  });
  expect(answer.status).toBe(409);
  expect(one("step call").status.code).toBe(SpanStatusCode.ERROR);
  expect(one("step call").attributes["error.type"]).toBe("observed_late");
  expect(one("POST /one").status.code).toBe(SpanStatusCode.UNSET);
  expect(spans().flatMap(({ events }) => events)).toHaveLength(1);
});

test("an error in a job's step marks both as failed and is recorded on the step", async () => {
  const { app } = await start();
  work = (ctx) =>
    ctx.step("call", { ifUnknown: "retry" }, () => {
      throw new PermanentError("never");
    });
  const ctx = await app.ctx(ann, { handler: "observed.one.do" });
  await ctx.enqueue("observed.one.work", { n: 1 });
  await app.settled().catch(() => undefined); // it says that the job went to the dead-letter queue
  const [job, step] = [one("process observed.one.work"), one("step call")];
  expect([job.status.code, step.status.code]).toEqual([SpanStatusCode.ERROR, SpanStatusCode.ERROR]);
  expect([job.events.length, step.events.length]).toEqual([0, 1]);
});

test.each([
  ["a text", "just a text", "_OTHER"],
  [
    "an error that names itself oddly",
    Object.assign(new Error("odd"), { name: "an odd name" }),
    "_OTHER",
  ],
  ["a permanent one", new PermanentError("never"), "PermanentError"],
])("records as a job's failure: %s", async (_, thrown, type) => {
  const { app } = await start();
  const ctx = await app.ctx(ann, { handler: "observed.one.do" });
  await ctx.enqueue("observed.one.work", { n: 1 });
  let left = 1;
  work = () => {
    left -= 1;
    if (left === 0) throw thrown;
  };
  await app.settled().catch(() => undefined);
  const [failed] = spans().filter((span) => span.name === "process observed.one.work");
  expect(failed?.status.code).toBe(SpanStatusCode.ERROR);
  expect(failed?.attributes["error.type"]).toBe(type);
  expect(failed?.events).toHaveLength(1);
});

test("an unreadable error still reaches the caller", async () => {
  const { app } = await start();
  const hostile = new Error("hostile");
  for (const name of ["code", "name", "message", "stack"]) {
    Object.defineProperty(hostile, name, {
      get: () => {
        throw new Error("no");
      },
    });
  }
  work = (ctx) =>
    ctx.step("call", { ifUnknown: "retry" }, () => {
      throw hostile;
    });
  const answer = await app.fetch("/one", {
    method: "POST",
    as: ann,
    headers: { "idempotency-key": "d" },
  });
  expect(answer.status).toBe(500);
  expect(one("step call").attributes["error.type"]).toBe("_OTHER");
  expect(one("POST /one").status.code).toBe(SpanStatusCode.ERROR);
});

test("canceling a job, and the commit after the handler, behave as they do without a tracer", async () => {
  const { app } = await start();
  work = async (ctx) => {
    const { jobId } = await ctx.enqueue("observed.one.work", { n: 1 }, { delaySeconds: 60 });
    await ctx.publish("observed.ended", { n: 1 });
    return { isTakenBack: await ctx.cancelJob(jobId) };
  };
  const answer = await app.fetch("/one", {
    method: "POST",
    as: ann,
    headers: { "idempotency-key": "e" },
  });
  expect(await answer.json()).toEqual({ isTakenBack: false }); // it is stored with the commit
  expect(one("commit").parentSpanContext?.spanId).toBe(one("POST /one").spanContext().spanId);
});

test("a fired schedule has a span with its name, which starts a trace", async () => {
  const { app } = await start();
  work = () => ({ done: true });
  app.clock.advance(366 * 86_400_000);
  await app.settled();
  const tick = one("observed.one.tick");
  expect([tick.kind, tick.parentSpanContext]).toEqual([SpanKind.INTERNAL, undefined]);
});

test("unreadable configuration marks its span and the request's as failed", async () => {
  const { app } = await start();
  work = (ctx) => ctx.config(observed.config.limit);
  for (const n of [1, 2, 3, 4]) app.faults.before("BatchGetItem", n).fail("InternalServerError");
  const answer = await app.fetch("/one/1", { as: ann });
  expect(answer.status).toBe(503);
  expect(
    spans()
      .filter(({ name }) => name === "config fetch")
      .map(({ status }) => status.code),
  ).toContain(SpanStatusCode.ERROR);
});

test("a claim's span has its outcome: taken, replayed or failed", async () => {
  const { app } = await start();
  work = () => ({ done: true });
  const given = { method: "POST", as: ann, headers: { "idempotency-key": "c" } };
  await app.fetch("/one", given);
  await app.fetch("/one", given);
  await app.fetch("/one", { ...given, body: { other: true } });
  const outcomes = spans()
    .filter(({ name }) => name === "claim")
    .map(({ attributes }) => attributes["keelson.claim.outcome"]);
  expect(outcomes).toEqual(["taken", "replayed", "failed"]);
});

test("calls that make a claim are below its span, but its work and everything after are not", async () => {
  const { tracer } = await start();
  const server = buildServer({ features: [observed] });
  const other = await startTestApp(server);
  onTestFinished(() => other.close());
  const runtime = await serverInternals(server).bound?.();
  if (runtime === undefined) throw new Error("it is not bound");
  const call = (name: string) => tracer.startSpan(name).end();
  const run = { claim: {}, work: async () => call("of the work") } as unknown as Run<void>; // safe: nothing else is asked for
  await runInScope(runtime, { headers, signal: undefined }, async (scope) => {
    await scope.spans?.claimed(run, async ({ work: taken }) => {
      call("take");
      await taken({} as never);
      call("complete");
      return { kind: "done" } as never; // whatever it is
    });
    runtime.observer?.ended(scope, {
      kind: "request",
      method: "GET",
      status: 200,
      bytes: 0,
      isAborted: false,
    });
  });
  const parentOf = (name: string) => one(name).parentSpanContext?.spanId;
  const [claim, request] = [one("claim").spanContext().spanId, one("GET").spanContext().spanId];
  expect(["take", "of the work", "complete"].map(parentOf)).toEqual([claim, request, request]);
});

test("a delayed job is created by the span that enqueues it, and the sending span links to that", async () => {
  const { app } = await start();
  const ctx = await app.ctx(ann, { handler: "observed.one.do" });
  await ctx.enqueue("observed.one.work", { n: 1 }, { delaySeconds: 0 });
  await ctx.commit([], {});
  await app.settled();
  const created = one("enqueue observed.one.work");
  const sent = spans().find(({ name }) => name.startsWith("send "));
  expect(created.attributes["messaging.operation.type"]).toBe("create");
  expect(sent?.attributes).toMatchObject({
    "messaging.system.name": "aws.sqs",
    "messaging.operation.type": "send",
  });
  expect(sent?.links.map((link) => link.context.spanId)).toEqual([created.spanContext().spanId]);
  expect(one("process observed.one.work").parentSpanContext?.spanId).toBe(
    created.spanContext().spanId,
  );
});

test.each([
  [undefined, "create"],
  [{ afterCommit: false }, "send"],
])(
  "a job with the options %j, and a delivery with them, have spans that %s it",
  async (options, type) => {
    const { app } = await start();
    work = async (ctx) => {
      await ctx.enqueue("observed.one.work", { n: 1 }, options);
      await ctx.delivery.send("log", { n: 1 }, options);
      return {};
    };
    const headers = { "idempotency-key": "o" };
    expect((await app.fetch("/one", { method: "POST", as: ann, headers })).status).toBe(200);
    work = () => undefined; // the job does it as well
    await app.settled();
    for (const name of ["enqueue observed.one.work", "deliver log"])
      expect(one(name).attributes["messaging.operation.type"]).toBe(type);
    expect(one("process observed.one.work").parentSpanContext?.spanId).toBe(
      one("enqueue observed.one.work").spanContext().spanId,
    );
  },
);

test("with an X-Ray root but no parent span, a request starts a trace and records the header", async () => {
  const { app } = await start({}, { trace: { incoming: "trust" } });
  const root = "Root=1-5759e988-bd862e3fe1be46a994272793";
  await app.fetch("/one/1", { as: ann, headers: { "x-amzn-trace-id": root } });
  const span = one("GET /one/:id");
  expect([span.parentSpanContext, span.links]).toEqual([undefined, []]);
  expect(span.spanContext().traceId).not.toBe("5759e988bd862e3fe1be46a994272793");
  expect(span.attributes["http.request.header.x-amzn-trace-id"]).toEqual([root]);
});

test("a remote span is written to headers as it was read", () => {
  const remote = remoteSpan({ traceId, spanId, sampled: true, state: "a=1,b=2" });
  expect(headersOf(remote?.spanContext() as never)).toEqual({
    traceparent: headers.traceparent,
    tracestate: "a=1,b=2",
  });
  expect(
    headersOf(
      remoteSpan({ traceId, spanId, sampled: false, state: undefined })?.spanContext() as never,
    ),
  ).toEqual({
    traceparent: `00-${traceId}-${spanId}-00`,
  });
  expect(
    remoteSpan({ traceId, spanId: undefined, sampled: true, state: undefined }),
  ).toBeUndefined();
  expect(createRandomDigits()(8)).toHaveLength(16);
});
