import {
  context,
  ProxyTracerProvider,
  propagation,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import { createTracing } from "./tracing.ts";

const exporter = new InMemorySpanExporter();
const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const register = (given: Parameters<typeof trace.setGlobalTracerProvider>[0] = provider) => {
  exporter.reset();
  trace.setGlobalTracerProvider(given);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
};
beforeEach(() => register());
const unregister = () => {
  for (const api of [trace, context, propagation]) api.disable();
};
afterEach(unregister);

/** The only span that there is. */
const only = () => {
  const spans = exporter.getFinishedSpans();
  expect(spans).toHaveLength(1);
  const { name, kind, attributes, links, status, events } = spans[0] as (typeof spans)[number]; // safe: as just expected
  return {
    name,
    kind,
    attributes,
    links: links.map((link) => link.context.spanId),
    status: status.code,
    events,
  };
};

const url = new URL("https://ann:key@hooks.example/a?token=secret#part");
const post = (send: (traceparent: string | undefined) => Promise<number>, to = url) =>
  createTracing().posting(to, send);

describe("A POST", () => {
  test("has a client span, named by its traceparent, without the URL's query and credentials", async () => {
    let sent: string | undefined;
    await post(async (traceparent) => {
      sent = traceparent;
      return 204;
    });
    const [span] = exporter.getFinishedSpans();
    expect(sent).toBe(`00-${span?.spanContext().traceId}-${span?.spanContext().spanId}-01`);
    expect(only()).toEqual({
      name: "POST",
      kind: SpanKind.CLIENT,
      attributes: {
        "http.request.method": "POST",
        "server.address": "hooks.example",
        "server.port": 443,
        "url.full": "https://hooks.example/a",
        "http.response.status_code": 204,
      },
      links: [],
      status: SpanStatusCode.UNSET,
      events: [],
    });
  });

  test.each([
    ["http://hooks.example/", "hooks.example", 80],
    ["https://hooks.example:8443/", "hooks.example", 8_443],
    ["http://[::1]:3000/", "::1", 3_000],
  ])("to %s has the host %s and the port %i", async (to, address, port) => {
    await post(async () => 200, new URL(to));
    expect(only().attributes).toMatchObject({
      "server.address": address,
      "server.port": port,
      "url.full": to,
    });
  });

  test.each([
    [302, SpanStatusCode.UNSET, undefined],
    [404, SpanStatusCode.ERROR, "404"],
    [503, SpanStatusCode.ERROR, "503"],
  ])("answered with %i has the span status %i", async (status, code, type) => {
    expect(await post(async () => status)).toBe(status);
    expect([only().status, only().attributes["error.type"]]).toEqual([code, type]);
  });

  test.each([
    [Object.assign(new Error("it is closed"), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
    [new DOMException("it was late", "AbortError"), "timeout"],
    ["nothing", "_OTHER"],
  ])(
    "that fails with %s has an error type, and leaves recording the error to its caller",
    async (error, type) => {
      await expect(post(() => Promise.reject(error))).rejects.toBe(error);
      expect(only()).toMatchObject({
        status: SpanStatusCode.ERROR,
        attributes: { "error.type": type },
        events: [],
      });
    },
  );

  test("gets no second span from an instrumentation", async () => {
    await post(async () => {
      provider.getTracer("instrumentation-http").startSpan("POST").end();
      return 200;
    });
    expect(only().name).toBe("POST");
  });

  test("has no traceparent without a span", async () => {
    unregister();
    register(new ProxyTracerProvider());
    const sent: unknown[] = [];
    await post(async (traceparent) => sent.push(traceparent));
    expect(sent).toEqual([undefined]);
  });
});

const [traceId, spanId] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
const created = {
  type: "a.made",
  text: JSON.stringify({ trace: { traceparent: `00-${traceId}-${spanId}-01` } }),
};
const busOf = (put: EventBus["put"], more: Partial<EventBus> = {}): EventBus => ({
  name: "shop",
  put,
  ...more,
});

describe("Events put on the bus", () => {
  test("share one span, which links to the spans that created them", async () => {
    const events = [
      created,
      { type: "a.made", text: "{}" },
      { type: "a.made", text: "nonsense" },
      { type: "a.made", text: "null" },
    ];
    const bus = createTracing().bus(busOf(async () => events.map(() => undefined)));
    expect(await bus.put(events)).toHaveLength(4);
    expect([bus.name, only()]).toEqual([
      "shop",
      {
        name: "send shop",
        kind: SpanKind.CLIENT,
        attributes: {
          "messaging.system.name": "aws.eventbridge",
          "messaging.operation.name": "send",
          "messaging.operation.type": "send",
          "messaging.destination.name": "shop",
          "messaging.batch.message_count": 4,
        },
        links: [spanId],
        status: SpanStatusCode.UNSET,
        events: [],
      },
    ]);
  });

  test("have a failed span when one is refused or when the call fails", async () => {
    const refusal = { reason: "no", isFinal: false };
    await createTracing()
      .bus(busOf(async () => [undefined, refusal]))
      .put([created, created]);
    expect([only().status, only().attributes["error.type"]]).toEqual([
      SpanStatusCode.ERROR,
      "_OTHER",
    ]);
    exporter.reset();
    const failing = createTracing().bus(busOf(() => Promise.reject(new TypeError("no"))));
    await expect(failing.put([created])).rejects.toThrow("no");
    expect([only().status, only().attributes["error.type"]]).toEqual([
      SpanStatusCode.ERROR,
      "TypeError",
    ]);
  });

  test("have no keelson span when the client is instrumented", () => {
    const bus = busOf(async () => [], { isTraced: true });
    expect(createTracing().bus(bus)).toBe(bus);
  });
});

describe("A due job", () => {
  const queueOf = (more: Partial<MessageQueue> = {}) =>
    ({ name: "jobs.fifo", send: async () => "m1", ...more }) as unknown as MessageQueue; // safe: nothing else is asked for

  test("has a span when it is sent, linked to the span that enqueued it", async () => {
    const isFinal = () => true;
    const queue = createTracing().queue(queueOf({ isFinal }));
    expect(queue.isFinal).toBe(isFinal);
    expect(await queue.send(created.text, { group: "g", deduplicationId: "d" })).toBe("m1");
    expect(only()).toMatchObject({
      name: "send jobs.fifo",
      kind: SpanKind.CLIENT,
      attributes: { "messaging.system.name": "aws.sqs", "messaging.destination.name": "jobs.fifo" },
      links: [spanId],
    });
    expect(only().attributes).not.toHaveProperty("messaging.batch.message_count");
  });

  test("has no keelson span when the client is instrumented", () => {
    const queue = queueOf({ isTraced: true });
    expect(createTracing().queue(queue)).toBe(queue);
  });
});
