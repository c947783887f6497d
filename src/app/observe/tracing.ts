import { w3cSpan } from "../../base/request/trace.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import { RunSpans } from "./run-spans.ts";
import type { Origin, RunSubject, TracedRun } from "./span-attributes.ts";
import {
  type AroundOptions,
  type Attributes,
  fail,
  failed,
  headersOf,
  isValid,
  linksOf,
  remoteSpan,
  spanKinds,
  Tracer,
  type TracerSpan,
  typeOf,
} from "./tracer.ts";

export type { RunSpans } from "./run-spans.ts";
export type { AskedRequest, Origin, RunSubject } from "./span-attributes.ts";
export type Tracing = ReturnType<typeof createTracing>;

/** Creates the spans of runs if an SDK is registered. */
export function createTracing() {
  const tracer = new Tracer();
  return {
    spansOf: (run: TracedRun, origin: () => Origin, subject: RunSubject | undefined) =>
      new RunSpans(tracer, run, origin, subject),
    around: <Result>(name: string, work: () => Promise<Result>) =>
      tracer.around(tracer.active(), { name, kind: spanKinds.internal }, work, (span, error) =>
        fail(span, error, true),
      ),
    posting: (url: URL, send: Parameters<typeof post>[2]) => post(tracer, url, send),
    bus: (bus: EventBus) => tracedBus(tracer, bus),
    queue: (queue: MessageQueue) => tracedQueue(tracer, queue),
  };
}

const longestUrl = 1_024;
/** Lowest status that is a failure for a client. */
const clientErrors = 400;

/**
 * Suppresses instrumentation of Node's HTTP, which would add a second span, and baggage that is not
 * for third parties.
 */
function post(
  tracer: Tracer,
  url: URL,
  send: (traceparent: string | undefined) => Promise<number>,
): Promise<number> {
  return tracer.around(
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

/** Omits query and credentials, which may be secrets. */
function postAttributes({ protocol, origin, pathname, hostname, port }: URL): Attributes {
  return {
    "http.request.method": "POST",
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    "url.full": `${origin}${pathname}`.slice(0, longestUrl),
  };
}

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
      const span = sending("aws.eventbridge", bus.name, events, more);
      return tracer.around(tracer.active(), span, work, failedWith);
    },
  };
}

/** Adds spans to the queue of due jobs. */
function tracedQueue(tracer: Tracer, queue: MessageQueue): Pick<MessageQueue, "send" | "isFinal"> {
  if (queue.isTraced === true) return queue;
  return {
    isFinal: queue.isFinal,
    send: (text, options) => {
      const span = sending("aws.sqs", queue.name, [{ text }]);
      const work = () => queue.send(text, options);
      return tracer.around(tracer.active(), span, work, failedWith);
    },
  };
}

/** The span's kind is `client`, because each message carries the context of its creation. */
function sending(
  system: string,
  destination: string,
  messages: readonly { readonly text: string }[],
  more: Attributes = {},
): AroundOptions {
  const links = linksOf(...messages.map(({ text }) => remoteSpan(creationOf(text))));
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

/** Returns the span that created a message. */
function creationOf(text: string) {
  try {
    const { trace } = Object(JSON.parse(text)) as { readonly trace?: unknown }; // safe: only read
    return w3cSpan(trace);
  } catch {
    return undefined;
  }
}

/** Does not record the error, which the caller's span records. */
function failedWith(span: TracerSpan, error: unknown): void {
  failing(span, error instanceof Error && error.name === "AbortError" ? "timeout" : typeOf(error));
}

function failing(span: TracerSpan, type: string): void {
  span.setAttribute("error.type", type).setStatus(failed);
}
