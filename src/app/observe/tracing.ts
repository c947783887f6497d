import { w3cSpan } from "../../base/request/trace.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import { type AroundOptions, around, fail, typeOf } from "./around.ts";
import { SpansOfRun } from "./run-spans.ts";
import type { Tracing } from "./spans.ts";
import {
  type Attributes,
  failed,
  headersOf,
  isValid,
  remoteSpan,
  spanKinds,
  Tracer,
  type TracerSpan,
} from "./tracer.ts";

export function createTracing(): Tracing {
  const tracer = new Tracer();
  return {
    spansOf: (scope, origin, subject) => new SpansOfRun(tracer, scope, origin, subject),
    around: (name, work) =>
      around(tracer, tracer.active(), { name, kind: spanKinds.internal }, work, (span, error) =>
        fail(span, error, true),
      ),
    posting: (url, send) => post(tracer, url, send),
    bus: (bus) => tracedBus(tracer, bus),
    queue: (queue) => tracedQueue(tracer, queue),
  };
}

/** Maximum length of a URL attribute, in characters. */
const longestUrl = 1_024;
/** Lowest status that is a failure for a client. */
const clientErrors = 400;

/**
 * Runs a POST in a span and passes the span's `traceparent` to `send`. Suppresses instrumentation
 * of Node's HTTP, which would add a second span, and baggage that is not for third parties.
 */
function post(
  tracer: Tracer,
  url: URL,
  send: (traceparent: string | undefined) => Promise<number>,
): Promise<number> {
  return around(
    tracer,
    tracer.active(),
    { name: "POST", kind: spanKinds.client, attributes: postAttributes(url) },
    async (span) => {
      const context = span.spanContext();
      const status = await send(isValid(context) ? headersOf(context).traceparent : undefined);
      span.setAttribute("http.response.status_code", status);
      if (status >= clientErrors) failing(span, String(status));
      return status;
    },
    failedWith,
    (context) => tracer.suppressed(context),
  );
}

/** Returns the attributes of a POST, without query and credentials, which may be secrets. */
function postAttributes({ protocol, origin, pathname, hostname, port }: URL): Attributes {
  return {
    "http.request.method": "POST",
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    "url.full": `${origin}${pathname}`.slice(0, longestUrl),
  };
}

/** Wraps a bus so that each `put` has a span with links to the spans that published the events. */
function tracedBus(tracer: Tracer, bus: EventBus): EventBus {
  // An instrumentation of the AWS SDK already creates spans.
  if (bus.isTraced === true) return bus;
  return {
    name: bus.name,
    put: (events) => {
      const more = { "messaging.batch.message_count": events.length };
      const work = async (span: TracerSpan) => {
        const refusals = await bus.put(events);
        if (refusals.some((refusal) => refusal !== undefined)) failing(span, "_OTHER");
        return refusals;
      };
      return around(
        tracer,
        tracer.active(),
        sending("aws.eventbridge", bus.name, events, more),
        work,
        failedWith,
      );
    },
  };
}

/**
 * Wraps the queue of due jobs so that each send has a span with a link to the span that enqueued
 * the job.
 */
function tracedQueue(tracer: Tracer, queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal"> {
  if (queue.isTraced === true) return queue;
  return {
    isFinal: queue.isFinal,
    send: (text, options) =>
      around(
        tracer,
        tracer.active(),
        sending("aws.sqs", queue.name, [{ text }]),
        () => queue.send(text, options),
        failedWith,
      ),
  };
}

/**
 * Returns the options of a span that sends messages. Each message carries the context of its
 * creation, so this span has the kind `client` (OpenTelemetry's messaging conventions).
 */
function sending(
  system: string,
  destination: string,
  messages: readonly { readonly text: string }[],
  more: Attributes = {},
): AroundOptions {
  const links = messages.flatMap(({ text }) => {
    const creation = remoteSpan(creationOf(text));
    return creation === undefined ? [] : [{ context: creation.spanContext() }];
  });
  return {
    name: `send ${destination}`,
    kind: spanKinds.client,
    attributes: {
      "messaging.system.name": system,
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": destination,
      ...more,
    },
    links,
  };
}

/** Returns the context of the span that created a message, as stored in the message. */
function creationOf(text: string) {
  try {
    const { trace } = Object(JSON.parse(text)) as { readonly trace?: unknown }; // safe: `Object()` allows any member access
    return w3cSpan(trace);
  } catch {
    return undefined;
  }
}

/** Marks a span as failed. Does not record the error, which the caller's span records. */
function failedWith(span: TracerSpan, error: unknown): void {
  failing(span, error instanceof Error && error.name === "AbortError" ? "timeout" : typeOf(error));
}

function failing(span: TracerSpan, type: string): void {
  span.setAttribute("error.type", type).setStatus(failed);
}
