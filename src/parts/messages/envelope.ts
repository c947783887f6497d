import { PermanentError } from "../../base/errors/permanent-error.ts";
import { type SpanContext, type TraceHeaders, w3cSpan } from "../../base/request/trace.ts";
import { type Cause, causeOf, idOf, objectOf, recordOf } from "./cause.ts";
import { isEventType } from "./check-payload.ts";
import type { Proof } from "./proof.ts";
import { mayBeUnescaped, queueText } from "./queue-text.ts";
import { wirePayload } from "./wire-payload.ts";

/** An event as it goes over the bus (specification 2.8). */
export interface SharedEvent<Payload = unknown> extends Cause {
  readonly kind: "shared";
  /** `<entity>.<event name>` */
  readonly type: string;
  readonly eventId: string;
  readonly payload: Payload;
}

/** EventBridge takes no larger entry, in bytes: its detail, detail type and source. */
const maxEntryBytes = 262_144;
/** What an entry has beside the detail: source, type, time. */
const entryBytes = 512;

/**
 * The payload as it goes over the wire.
 *
 * @throws TypeError where JSON cannot hold it, it is no object, or it has a `requestId` of its own.
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
 * The event as it goes over the wire: JSON, with the request ID in its payload too, as `requestId` (specification 6.3). A payload
 * that the bus could not deliver to a queue goes as a text of JSON, `payloadText`: the bus leaves what a text spells as it is.
 *
 * @throws RangeError where it is too large.
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

/** What a message carries beside what it says. Versions that do not know a part leave it out. */
export interface MessageParts {
  readonly proof?: Proof | undefined;
  /** Not part of what is proven: nobody goes by it but who looks at traces. */
  readonly trace?: TraceHeaders | undefined;
}

/** What came over a queue for an event. */
export interface Envelope {
  readonly event: SharedEvent;
  /** Where it was published; `undefined` where it does not say so in a way that can be read. */
  readonly trace?: SpanContext | undefined;
  /** As it came; unchecked. */
  readonly proof: unknown;
  /** Who has put it on the bus, as the bus says; `undefined` where it came without the bus around it. */
  readonly source: string | undefined;
}

/**
 * Reads an envelope, as EventBridge puts it into a queue or as it is.
 *
 * @throws PermanentError naming what is wrong with it: a retry would not mend it.
 */
export function readEnvelope(text: string): SharedEvent {
  return openEnvelope(objectOf(text, "the message")).event;
}

/** The same of a body that was parsed, with what came beside the event. @throws as {@link readEnvelope}. */
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
