import { PermanentError } from "../../base/errors/permanent-error.ts";
import { type SpanContext, type TraceHeaders, w3cSpan } from "../../base/request/trace.ts";
import { type Cause, causeOf, idOf, objectOf, recordOf } from "./cause.ts";
import { isEventType } from "./check-payload.ts";
import type { Proof } from "./proof.ts";
import { mayBeUnescaped, queueText } from "./queue-text.ts";
import { wirePayload } from "./wire-payload.ts";

/** Event in the form that is sent over the bus (specification 2.8). */
export interface SharedEvent<Payload = unknown> extends Cause {
  readonly kind: "shared";
  /** `<entity>.<event name>` */
  readonly type: string;
  readonly eventId: string;
  readonly payload: Payload;
}

/** EventBridge's limit for an entry, in bytes: its detail, detail type and source. */
const maxEntryBytes = 262_144;
/** Bytes reserved for the entry's other fields: source, type and time. */
const entryBytes = 512;

/**
 * Returns the payload in its wire format.
 *
 * @throws TypeError if it cannot be written as JSON, is not an object, or already has a
 * `requestId`.
 */
export function eventPayload(type: string, given: unknown): Readonly<Record<string, unknown>> {
  const payload = wirePayload(given, `ctx.publish: the payload of ${type}`);
  if ("requestId" in payload) {
    throw new TypeError(
      `ctx.publish: the payload of ${type} has a "requestId", which is keelson's own; rename it`,
    );
  }
  return payload;
}

/**
 * Serializes an event as JSON. The payload also contains the request ID, as `requestId`
 * (specification 6.3). If the bus could not deliver a payload to a queue, the payload is sent as a
 * string of JSON in `payloadText`, because the bus does not parse the JSON inside a string.
 *
 * @throws RangeError if the event is too large.
 */
export function envelopeText(
  event: SharedEvent<Readonly<Record<string, unknown>>>,
  { proof, trace }: MessageParts = {},
): string {
  const { type, origRequestId } = event;
  const payload = { ...event.payload, requestId: origRequestId };
  let text = JSON.stringify({ ...event, payload, proof, trace });
  if (mayBeUnescaped(text)) {
    const payloadText = queueText(JSON.stringify(payload));
    text = JSON.stringify({ ...event, payload: undefined, payloadText, proof, trace });
  }
  const bytes = Buffer.byteLength(text) + entryBytes;
  if (bytes > maxEntryBytes) {
    throw new RangeError(
      `ctx.publish: the event ${type} has ${bytes} bytes, and EventBridge takes ${maxEntryBytes}; publish where the data is, not the data`,
    );
  }
  return text;
}

/** Fields of a message in addition to its content. Versions that do not know a field ignore it. */
export interface MessageParts {
  readonly proof?: Proof | undefined;
  /** Not covered by the proof, because only tracing uses it. */
  readonly trace?: TraceHeaders | undefined;
}

export interface Envelope {
  readonly event: SharedEvent;
  /** Span that published the event; `undefined` if it is absent or unreadable. */
  readonly trace?: SpanContext | undefined;
  /** As received, unchecked. */
  readonly proof: unknown;
  /** Sender according to the bus; `undefined` if the message arrived without the bus's wrapper. */
  readonly source: string | undefined;
}

/**
 * Reads an envelope, with or without the wrapper that EventBridge adds on the way to a queue.
 *
 * @throws PermanentError with the problem. A retry would not fix it.
 */
export function readEnvelope(text: string): SharedEvent {
  return openEnvelope(objectOf(text, "the message")).event;
}

/**
 * Reads an envelope from a parsed body, together with the fields next to the event.
 * @throws the errors of {@link readEnvelope}.
 */
export function openEnvelope(body: Readonly<Record<string, unknown>>): Envelope {
  const isWrapped = "detail-type" in body;
  const envelope = isWrapped ? recordOf(body["detail"], "its detail") : body;
  if (envelope["kind"] !== "shared") throw new PermanentError("its kind is not shared");
  const { type } = envelope;
  if (typeof type !== "string" || !isEventType(type))
    throw new PermanentError("its type is not <entity>.<event name>");
  const { requestId: _reserved, ...payload } = payloadOf(envelope);
  const event: SharedEvent = {
    kind: "shared",
    type,
    eventId: idOf(envelope, "eventId"),
    payload,
    ...causeOf(envelope),
  };
  const trace = w3cSpan(envelope["trace"]);
  return {
    event,
    proof: envelope["proof"],
    trace,
    source: isWrapped ? String(body["source"]) : undefined,
  };
}

function payloadOf({
  payload,
  payloadText,
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const isText = payload === undefined && typeof payloadText === "string";
  return isText ? objectOf(payloadText, "its payload") : recordOf(payload, "its payload");
}
