import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PermanentError } from "../../base/errors/errors.ts";
import { eventType } from "../../base/errors/option-table.ts";
import { isIdentifier, maxNameLength } from "../../base/identity/access.ts";
import { type SpanContext, type TraceHeaders, w3cSpan } from "../../base/request/trace.ts";
import { eventWrapperBytes, serviceSizes, tooLarge } from "../../base/sizes/service-sizes.ts";
import { tenantGroup } from "./tenant-group.ts";

/** Members of a message or of a part of it, unchecked. */
export type Fields = Readonly<Record<string, unknown>>;

/** Tenant, user, cause and originator of a message. Every event and every job carries them. */
export interface Cause {
  /** ID of the request, event or job that caused the message (specification 2.8). */
  readonly causedBy: string;
  /** ID of the request that started the whole chain (specification 6.3). */
  readonly origRequestId: string;
  /** Tenant of the cause; `undefined` if the caller was anonymous. */
  readonly tenantId?: string | undefined;
  /** User of the cause; `undefined` if the caller was anonymous. */
  readonly userId?: string | undefined;
  /**
   * `system` if a system run created the message. Absent for messages caused by requests, and for
   * messages of versions without this field.
   */
  readonly originator?: "system" | undefined;
}

/** Event in the form that is sent over the bus (specification 2.8). */
export interface SharedEvent<Payload = unknown> extends Cause {
  readonly kind: "shared";
  /** Type of the event: `<entity>.<event name>`. */
  readonly type: string;
  readonly eventId: string;
  readonly payload: Payload;
}

/** {@link wirePayload} of an event. @throws TypeError also for a member `requestId`. */
export function eventPayload(type: string, given: unknown): Fields {
  const payload = wirePayload(given, `ctx.publish: the payload of ${type}`);
  if ("requestId" in payload) {
    throw new TypeError(
      `ctx.publish: the payload of ${type} has a "requestId", which is keelson's own; rename it`,
    );
  }
  return payload;
}

/**
 * The request ID becomes the payload's `requestId` (specification 6.3). A payload that the bus
 * could not deliver to a queue becomes a string in `payloadText`, inside which the bus parses no
 * JSON.
 * @throws RangeError if the event is too large.
 */
export function envelopeText(
  event: SharedEvent<Fields>,
  { proof, trace }: MessageParts = {},
): string {
  const { type, origRequestId } = event;
  const payload = { ...event.payload, requestId: origRequestId };
  // The rule of the bus makes this member the message group.
  const added = { group: tenantGroup(event.tenantId), proof, trace };
  let text = JSON.stringify({ ...event, payload, ...added });
  if (mayBeUnescaped(text)) {
    const payloadText = queueText(JSON.stringify(payload));
    text = JSON.stringify({ ...event, payload: undefined, payloadText, ...added });
  }
  const bytes = Buffer.byteLength(text) + eventWrapperBytes;
  const size = serviceSizes.eventBridgeEntry;
  if (bytes > size.maxBytes)
    throw tooLarge(
      `ctx.publish: the event ${type}`,
      bytes,
      size,
      "publish where the data is, not the data",
    );
  return text;
}

export interface Proof {
  /** Name of the ring's key from which the signing key is derived. */
  readonly key: string;
  /** HMAC-SHA-256 in Base64url. */
  readonly mac: string;
}

/** Fields of a message in addition to its content. Versions that do not know a field ignore it. */
export interface MessageParts {
  readonly proof?: Proof | undefined;
  /** Trace headers. The proof does not cover them, because only tracing uses them. */
  readonly trace?: TraceHeaders | undefined;
}

export interface Envelope {
  readonly event: SharedEvent;
  readonly trace?: SpanContext | undefined;
  readonly proof: unknown;
  /** Sender according to the bus; `undefined` if the message came without the bus's wrapper. */
  readonly source: string | undefined;
}

export function readEnvelope(text: string): SharedEvent {
  return openEnvelope(objectOf(text, "the message")).event;
}

/**
 * Reads an envelope, with or without the wrapper that EventBridge adds on the way to a queue.
 * @throws PermanentError with the problem, which a retry would not fix.
 */
export function openEnvelope(body: Fields): Envelope {
  const isWrapped = "detail-type" in body;
  const envelope = isWrapped ? recordOf(body["detail"], "its detail") : body;
  if (envelope["kind"] !== "shared") throw new PermanentError("its kind is not shared");
  const { type } = envelope;
  if (typeof type !== "string" || !eventType.test(type))
    throw new PermanentError("its type is not <entity>.<event name>");
  const { requestId: _reserved, ...payload } = payloadOf(envelope);
  const eventId = idOf(envelope, "eventId");
  return {
    event: { kind: "shared", type, eventId, payload, ...causeOf(envelope) },
    proof: envelope["proof"],
    trace: w3cSpan(envelope["trace"]),
    source: isWrapped ? String(body["source"]) : undefined,
  };
}

function payloadOf({ payload, payloadText }: Fields): Fields {
  const isText = payload === undefined && typeof payloadText === "string";
  return isText ? objectOf(payloadText, "its payload") : recordOf(payload, "its payload");
}

/**
 * Whether a message asks for a system run. A message with a tenant never does, because its run must
 * not reach other tenants' rows.
 */
export function asksSystem({
  originator,
  tenantId,
}: Pick<Cause, "originator" | "tenantId">): boolean {
  return originator === "system" && tenantId === undefined;
}

export function objectOf(text: string, what: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new PermanentError(`${what} is not JSON`);
  }
  return recordOf(value, what);
}

export function recordOf(value: unknown, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new PermanentError(`${what} is not an object`);
  return value as Fields; // safe: checked above; members are unknown
}

export function causeOf(message: Fields): Cause {
  const { tenantId, userId, originator } = message;
  // Tokens follow the same rule.
  if (tenantId !== undefined && !isIdentifier(tenantId)) throw misnamed("tenantId");
  if (userId !== undefined && !isIdentifier(userId)) throw misnamed("userId");
  if (userId !== undefined && tenantId === undefined)
    throw new PermanentError("userId comes without a tenantId");
  if (originator !== undefined && originator !== "system")
    throw new PermanentError('originator is not "system"');
  return {
    causedBy: idOf(message, "causedBy"),
    origRequestId: idOf(message, "origRequestId"),
    tenantId,
    userId,
    originator,
  };
}

export function idOf(message: Fields, member: string): string {
  const value = message[member];
  if (typeof value === "string" && /^[A-Za-z0-9._:=+/@-]{1,128}$/.test(value)) return value;
  throw new PermanentError(`${member} is not an ID`);
}

function misnamed(member: string): PermanentError {
  return new PermanentError(
    `${member} is not a string of 1 to ${maxNameLength} characters without control characters`,
  );
}

/** Returns a payload as its receiver reads it. @throws TypeError unless it is a JSON object. */
export function wirePayload(payload: unknown, what: string): Fields {
  let text: string | undefined;
  try {
    text = JSON.stringify(payload);
  } catch (cause) {
    throw new TypeError(`${what} cannot be written as JSON: ${String(cause)}`, { cause });
  }
  if (!text?.startsWith("{")) throw new TypeError(`${what} is not an object`);
  return JSON.parse(text) as Fields; // safe: its JSON starts with `{`
}

/** Validates a payload. @throws the error of `refuse`, with at most ten problems. */
export async function checkPayload(
  schema: StandardSchemaV1 | undefined,
  payload: unknown,
  refuse: (problems: string) => Error,
): Promise<unknown> {
  if (schema === undefined) return payload;
  const outcome = await schema["~standard"].validate(payload);
  if (outcome.issues === undefined) return outcome.value;
  const problems = outcome.issues.slice(0, 10).map(({ path = [], message }) => {
    const dotted = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return `${dotted === "" ? "" : `${dotted}: `}${message}`.slice(0, 500);
  });
  throw refuse(problems.join("; "));
}

/**
 * Escapes the characters that SQS refuses and JSON does not escape. JSON escapes all others that
 * SQS refuses: control characters and lone surrogates.
 */
export function queueText(json: string): string {
  return json.replace(
    /[\uFFFE\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16)}`,
  );
}

/**
 * Whether SQS could refuse this JSON after EventBridge has parsed it and written it again, which
 * may make escaped characters plain. Also `true` for the escape of a lone surrogate in a string's
 * own text, which is harmless.
 */
export function mayBeUnescaped(json: string): boolean {
  return /[\uFFFE\uFFFF]|\\ud[89a-f]/.test(json);
}
