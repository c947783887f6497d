// Spans, where an SDK has registered itself: their tree, names, kinds and attributes, on both hosts.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { access, buildServer, createTenantConfig, defineFeature, NotFoundError } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { lambdaHost, receiveHooks } from "../fixtures/traced-hosts.ts";
import { runs } from "../support/runs.ts";

declare module "keelson" {
  interface Events {
    "spanned-file.created": { id: string };
  }
  interface Jobs {
    "spanned.file.scan": { id: string };
  }
}

const ann = { id: "ann", tenantId: "acme" };
const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "theirs=1" };

const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
let receiver: Awaited<ReturnType<typeof receiveHooks>>;
/** IDs of which the first attempt fails. */
const broken = new Set<string>();
const breakOnce = (id: string) => {
  if (broken.delete(id)) throw new Error(`${id} is broken`);
};

const spanned = defineFeature("spanned", (r) => {
  const file = z.object({ id: z.string() });
  const config = r.config({ keys: { limit: createTenantConfig("number", { default: 7 }) } });
  const table = r.table("spanned-files", { partitionKey: "pk", tenant: false });
  r.event("spanned-file.created", file);
  r.write("file.create", {
    route: "POST /files/:id",
    access: access.authenticated,
    once: { required: true },
    input: file,
    handler: async (ctx, { id }) => {
      await ctx.config(config.limit);
      trace.getActiveSpan()?.setAttribute("app.note", "of the server span");
      await trace.getTracer("app").startActiveSpan("app.work", async (span) => {
        await ctx.step("charge", { ifUnknown: "retry" }, () => ({ charged: true }));
        span.end();
      });
      await ctx.publish("spanned-file.created", { id });
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: id } } }], {
        traceId: ctx.trace.traceId,
      });
    },
  });
  r.on("spanned-file.created", {
    name: "follow",
    handler: async (ctx, { payload: { id } }) => {
      breakOnce(id);
      await ctx.enqueue("spanned.file.scan", { id });
    },
  });
  r.job("file.scan", {
    input: file,
    handler: (ctx, { id }) => ctx.delivery.send("webhook", { url: receiver.url, body: { id } }),
  });
  r.query("file.show", {
    route: "GET /files/:id",
    access: access.everyone,
    input: file,
    handler: async (ctx, { id }) => {
      if (id === "missing") throw new NotFoundError("file", id);
      if (id === "broken") throw new Error("it is broken");
      ctx.log.info("spanned.shown", { id });
      return { ...ctx.trace.headers() };
    },
  });
});
const build = () =>
  buildServer({
    features: [spanned],
    delivery: { webhook: { allowHttp: true, allowPrivate: true } },
    basePath: "/api",
  });

let app: TestApp;
/** The names of the event bus and of the FIFO queue of jobs. */
let [bus, fifo] = ["", ""];
beforeAll(async () => {
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  receiver = await receiveHooks();
  app = await startTestApp(build(), { webhooks: { allowHttp: true, allowPrivate: true } });
  bus = app.env["KEELSON_EVENT_BUS"] ?? "keelson";
  fifo = app.env["KEELSON_JOB_QUEUE"]?.split("/").at(-1) ?? "keelson-jobs.fifo";
});
afterAll(async () => {
  await app.close();
  await receiver.close();
  await provider.shutdown();
  for (const api of [trace, context, propagation]) api.disable();
});
beforeEach(() => exporter.reset());
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const kinds = ["internal", "server", "client", "producer", "consumer"];
const spans = () => exporter.getFinishedSpans();
const named = (name: string) => spans().filter((span) => span.name === name);
const one = (name: string): ReadableSpan => {
  const [span, ...more] = named(name);
  if (span === undefined || more.length > 0)
    throw new Error(
      `${name}: ${spans()
        .map((each) => each.name)
        .join(", ")}`,
    );
  return span;
};
/** A span's name and kind, below those of its parents. */
const pathOf = (span: ReadableSpan): string => {
  const parent = spans().find(
    (each) => each.spanContext().spanId === span.parentSpanContext?.spanId,
  );
  return `${parent === undefined ? "" : `${pathOf(parent)} > `}${span.name} (${kinds[span.kind]})`;
};

/** The attributes of the published conventions that are not deprecated. */
function publishedAttributes(): ReadonlySet<string> {
  const folder = dirname(
    createRequire(import.meta.url).resolve("@opentelemetry/semantic-conventions"),
  );
  const texts = ["stable", "experimental"].map((kind) =>
    readFileSync(join(folder, `${kind}_attributes.d.mts`), "utf8"),
  );
  const declared =
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:export )?declare const ATTR_\w+: "([^"]+)"/g;
  const found = texts.flatMap((text) => [...text.matchAll(declared)]);
  return new Set(
    found.flatMap(([, comment = "", name = ""]) => (comment.includes("@deprecated") ? [] : [name])),
  );
}

const container = () => ({
  ask: async (method: string, path: string, given: Readonly<Record<string, string>>) =>
    (await app.fetch(path, { method, as: ann, headers: given })).json(),
  finish: () => app.settled(),
});
const lambda = () => {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  return lambdaHost(app, build(), ann);
};

describe.each([
  ["the container", container],
  ["Lambda", lambda],
] as const)("on %s", (host, start) => {
  test("one trace forms a tree from the request to the webhook, across a failure and a redelivery", async () => {
    const { ask, finish } = start();
    const id = `tree-${host.replace(" ", "-")}`;
    broken.add(id);
    const key = { "idempotency-key": id, "content-type": "application/json" };
    expect(await ask("POST", `/api/files/${id}`, { ...headers, ...key })).toEqual({ traceId });
    await finish();
    expect(
      spans().filter(
        (span) => span.spanContext().traceId !== traceId && span.name !== "config fetch",
      ),
    ).toEqual([]);
    const server = "POST /api/files/:id (server)";
    const publish = `${server} > publish spanned-file.created (producer)`;
    const consume = `${publish} > process spanned-file.created (consumer)`;
    const enqueue = `${consume} > enqueue spanned.file.scan (producer)`;
    const job = `${enqueue} > process spanned.file.scan (consumer)`;
    const deliver = `${job} > deliver webhook (producer)`;
    const sent = `${deliver} > process webhook (consumer)`;
    const dispatch = `${server} > send ${bus} (client)`;
    // Only a container takes an emulator's default.
    const queue = host === "Lambda" ? fifo : fifo.replace(/\.fifo$/, "");
    expect(spans().map(pathOf).sort()).toEqual(
      [
        ...[
          server,
          `${server} > claim (internal)`,
          `${server} > config fetch (internal)`,
          `${server} > commit (internal)`,
        ],
        ...[
          `${server} > app.work (internal)`,
          `${server} > app.work (internal) > step charge (internal)`,
          publish,
          dispatch,
        ],
        // The first attempt, and the one that does it.
        ...[consume, `${consume} > claim (internal)`, consume, `${consume} > claim (internal)`],
        ...[
          enqueue,
          `${consume} > commit (internal)`,
          `${consume} > send ${queue} (client)`,
          job,
          `${job} > claim (internal)`,
          `${job} > commit (internal)`,
          `${job} > send ${queue} (client)`,
        ],
        ...[deliver, sent, `${sent} > claim (internal)`, `${sent} > POST (client)`],
      ].sort(),
    );
    expect(one("POST /api/files/:id").parentSpanContext).toMatchObject({ spanId, isRemote: true });
    expect(one("POST /api/files/:id").attributes["app.note"]).toBe("of the server span");
    // What has asked for it is linked as well.
    for (const span of spans().filter(({ kind }) => kinds[kind] === "consumer")) {
      expect(span.links.map((link) => link.context.spanId)).toEqual([
        span.parentSpanContext?.spanId,
      ]);
    }
    const [hook] = receiver.hooks.filter((each) => each.id === id);
    expect(hook?.headers["traceparent"]).toBe(
      `00-${traceId}-${one("POST").spanContext().spanId}-01`,
    );
    const [created] = named("publish spanned-file.created");
    expect(one(`send ${bus}`).links.map((link) => link.context.spanId)).toEqual([
      created?.spanContext().spanId,
    ]);
  });
});

test("attributes follow the published conventions, and none is deprecated", async () => {
  const key = { "idempotency-key": "attributes", "user-agent": "tests" };
  await container().ask("POST", "/api/files/attributes", key);
  await app.settled();
  const known = publishedAttributes();
  const used = new Set(spans().flatMap(({ attributes }) => Object.keys(attributes)));
  expect([...used].filter((name) => !known.has(name)).sort()).toEqual([
    "app.note",
    "keelson.claim.outcome",
  ]);
  expect(one("POST /api/files/:id").attributes).toEqual({
    "http.request.method": "POST",
    "http.route": "/api/files/:id",
    "url.path": "/api/files/attributes",
    "url.scheme": "http",
    "server.address": "127.0.0.1",
    "server.port": expect.any(Number),
    "client.address": "127.0.0.1",
    "user_agent.original": "tests",
    "http.response.status_code": 200,
    "app.note": "of the server span",
  });
  const about = {
    "messaging.destination.name": "spanned-file.created",
    "messaging.message.id": app.events.at(-1)?.eventId,
  };
  expect(one("publish spanned-file.created").attributes).toMatchObject({
    ...about,
    "messaging.system.name": "aws.eventbridge",
    "messaging.operation.name": "publish",
    "messaging.operation.type": conventions.MESSAGING_OPERATION_TYPE_VALUE_CREATE,
  });
  expect(one("process spanned-file.created").attributes).toMatchObject({
    ...about,
    "messaging.system.name": conventions.MESSAGING_SYSTEM_NAME_VALUE_AWS_SQS,
    "messaging.operation.name": "process",
    "messaging.operation.type": conventions.MESSAGING_OPERATION_TYPE_VALUE_PROCESS,
    "messaging.destination.subscription.name": "spanned.spanned-file.follow",
  });
  expect(one(`send ${bus}`).attributes).toEqual({
    "messaging.system.name": "aws.eventbridge",
    "messaging.operation.name": "send",
    "messaging.operation.type": conventions.MESSAGING_OPERATION_TYPE_VALUE_SEND,
    "messaging.destination.name": bus,
    "messaging.batch.message_count": 1,
  });
  expect(one("POST").attributes).toEqual({
    "http.request.method": "POST",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(receiver.url).port),
    "url.full": receiver.url,
    "http.response.status_code": 204,
  });
  expect(named("claim").map(({ attributes }) => attributes["keelson.claim.outcome"])).toEqual([
    "taken",
    "taken",
    "taken",
    "taken",
  ]);
});

test("an unknown path has no route, an unknown method is _OTHER, and neither is a server error", async () => {
  await app.fetch("/api/nowhere");
  await app.fetch("/api/files/a", { method: "PURGE" });
  const [unmatched, unknown] = [one("GET"), one("HTTP")];
  expect(unmatched.attributes).toMatchObject({
    "http.request.method": "GET",
    "http.response.status_code": 404,
  });
  expect(unmatched.attributes).not.toHaveProperty("http.route");
  expect(unknown.attributes).toMatchObject({
    "http.request.method": "_OTHER",
    "http.request.method_original": "PURGE",
  });
  expect([unmatched.status.code, unknown.status.code]).toEqual([0, 0]);
});

test("an error is recorded once, where it happened; the server's span fails from status 500 up", async () => {
  for (const id of ["missing", "broken"]) await app.fetch(`/api/files/${id}`);
  const [missing, failed] = named("GET /api/files/:id");
  expect([missing?.status.code, missing?.events]).toEqual([0, []]);
  expect(failed?.status.code).toBe(2);
  expect(failed?.attributes).toMatchObject({
    "http.response.status_code": 500,
    "error.type": "500",
  });
  expect(failed?.events.map(({ attributes }) => attributes?.["exception.message"])).toEqual([
    "it is broken",
  ]);

  exporter.reset();
  broken.add("recorded");
  await container().ask("POST", "/api/files/recorded", { "idempotency-key": "recorded" });
  await app.settled();
  const events = spans().flatMap((span) =>
    span.events.map((event) => [span.name, event.attributes?.["exception.message"]]),
  );
  expect(events).toEqual([["process spanned-file.created", "recorded is broken"]]);
  expect(named("process spanned-file.created").map(({ status }) => status.code)).toEqual([2, 0]);
});

test("a foreign trace is linked, not joined; log lines and outgoing calls name the request's own span", async () => {
  const sent = (await (await app.fetch("/api/files/a", { headers })).json()) as {
    readonly traceparent: string;
  };
  const span = one("GET /api/files/:id");
  const own = span.spanContext();
  expect(own.traceId).not.toBe(traceId);
  expect(span.parentSpanContext).toBeUndefined();
  expect(span.links.map((link) => [link.context.traceId, link.context.spanId])).toEqual([
    [traceId, spanId],
  ]);
  expect(sent.traceparent).toBe(`00-${own.traceId}-${own.spanId}-01`);
  expect(app.logs.findLast(({ msg }) => msg === "spanned.shown")).toMatchObject({
    trace_id: own.traceId,
    span_id: own.spanId,
  });
});

test("concurrent requests never have a span or a line in each other's trace", async () => {
  const all = Array.from({ length: runs(200) }, (_, at) => at);
  const idOf = (at: number) => at.toString(16).padStart(32, "a");
  await Promise.all(
    all.map((at) =>
      app.fetch(`/api/files/at-${at}`, {
        method: "POST",
        as: ann,
        headers: { traceparent: `00-${idOf(at)}-${spanId}-01`, "idempotency-key": `at-${at}` },
      }),
    ),
  );
  const servers = named("POST /api/files/:id");
  expect(servers).toHaveLength(all.length);
  for (const span of servers) {
    const at = Number(String(span.attributes["url.path"]).slice("/api/files/at-".length));
    expect(span.spanContext().traceId).toBe(idOf(at));
    const parts = spans().filter(
      (each) => each.parentSpanContext?.spanId === span.spanContext().spanId,
    );
    expect(
      parts
        .map(({ name }) => name)
        .filter((name) => name !== "config fetch")
        .sort(),
    ).toEqual([...["app.work", "claim", "commit", "publish spanned-file.created", `send ${bus}`]]);
    expect(parts.every((part) => part.spanContext().traceId === idOf(at))).toBe(true);
  }
});
