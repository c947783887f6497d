import { w3cSpan } from "../../base/request/trace.ts";
import type { MessageQueue } from "../../parts/messages/message-queue.ts";
import type { EventBus } from "../../parts/messages/outbox.ts";
import { type AroundOptions, around } from "./around.ts";
import { typeOf } from "./span-failure.ts";
import {
  type Attributes,
  failed,
  headersOf,
  isValid,
  remoteSpan,
  spanKinds,
  type Tracer,
  type TracerSpan,
} from "./tracer.ts";

/** How long a URL may become. */
const longestUrl = 1_024;
/** From which status on a request has failed, as a client sees it. */
const clientErrors = 400;

/**
 * Posts with a span, which `send` is told the `traceparent` of. An instrumentation of Node's HTTP makes none beside it, nor does it add
 * headers: what tracing systems and the application have noted for callees is not for third parties.
 */
export function post(
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

/** Query and credentials are left out: they may be secrets. */
function postAttributes({ protocol, origin, pathname, hostname, port }: URL): Attributes {
  return {
    "http.request.method": "POST",
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    "url.full": `${origin}${pathname}`.slice(0, longestUrl),
  };
}

/** A bus with a span for each time that events are put on it, which links to the spans that have published them. */
export function tracedBus(tracer: Tracer, bus: EventBus): EventBus {
  // An instrumentation of the AWS SDK has spans of its own.
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

/** The queue of jobs that are due, with a span for each that is sent, which links to the span that has enqueued it. */
export function tracedQueue(
  tracer: Tracer,
  queue: MessageQueue,
): Pick<MessageQueue, "send" | "isFinal"> {
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

/** What a span says of messages that are sent. They have contexts of their own, so that it is a client's (conventions of messaging). */
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

/** The span that a message was created in, as it carries it. */
function creationOf(text: string) {
  try {
    const { trace } = Object(JSON.parse(text)) as { readonly trace?: unknown }; // safe: any member of an object may be read
    return w3cSpan(trace);
  } catch {
    return undefined;
  }
}

/** An error is recorded where it ends up: on the span of what has called. */
function failedWith(span: TracerSpan, error: unknown): void {
  failing(span, error instanceof Error && error.name === "AbortError" ? "timeout" : typeOf(error));
}

function failing(span: TracerSpan, type: string): void {
  span.setAttribute("error.type", type).setStatus(failed);
}
