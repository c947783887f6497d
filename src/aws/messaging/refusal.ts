import type { PutEventsResultEntry } from "@aws-sdk/client-eventbridge";
import type { Refusal } from "../../parts/messages/outbox.ts";

interface CallFailure extends Refusal {
  /** Whether one entry may be the cause, and the others would succeed without it. */
  readonly mayBeOneEntrys: boolean;
}

const maxReasonLength = 500;

/**
 * Codes of entries that EventBridge never accepts, without those that a deployment can fix.
 * https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
 */
const finalCodes: readonly string[] = ["InvalidArgument", "MalformedDetail", "RedactionFailure"];
const finalErrors: readonly string[] = ["ValidationException", "SerializationException"];

/** Errors about the bus or the source, which are the same for every event. */
const ofDeployment = /event ?bus|(?:Parameter |at '[\w.]*)(?:source|endpointId)\b/i;

export function entryRefusal({
  EventId,
  ErrorCode = "no answer",
  ErrorMessage = "",
}: PutEventsResultEntry = {}): Refusal | undefined {
  if (EventId !== undefined) return undefined;
  const isFinal = finalCodes.includes(ErrorCode) && !ofDeployment.test(ErrorMessage);
  return { reason: `${ErrorCode} ${ErrorMessage}`.trim().slice(0, maxReasonLength), isFinal };
}

/**
 * Classifies the error of a whole call to EventBridge.
 *
 * | error | final for a single entry | retried one by one |
 * |---|---|---|
 * | the payload is refused | yes | yes |
 * | the bus or source is refused | no | no |
 * | the service failed (5xx) | no | yes |
 * | throttled, not allowed, no connection, anything else | no | no |
 */
export function callFailure(error: unknown): CallFailure {
  const { name, $fault, $metadata } = error as ServiceError; // safe: every member is optional
  // A value in the message may be the payload, which must not be logged.
  const reason = String(error)
    .replace(/Value '.*' at '/s, "Value at '")
    .slice(0, maxReasonLength);
  const isFinal =
    (finalErrors.includes(String(name)) || isTooLarge(error as ServiceError)) &&
    !ofDeployment.test(reason);
  const isServers = $fault === "server" || Number($metadata?.httpStatusCode) >= 500;
  return { reason, isFinal, mayBeOneEntrys: isFinal || isServers };
}

/**
 * Whether SQS will never accept the message.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export function isFinalSendError(error: unknown): boolean {
  const failure = Object(error) as ServiceError; // safe: every member is optional
  return (
    failure.name === "InvalidMessageContents" ||
    isTooLarge(failure) ||
    // SQS uses one name for messages that are too long and for unsupported parameters.
    /must be shorter than \d+ bytes/.test(String(failure.message))
  );
}

interface ServiceError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly $fault?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

function isTooLarge({ name, $metadata }: ServiceError): boolean {
  return (
    /^RequestEntityTooLarge(Exception)?$/.test(String(name)) || $metadata?.httpStatusCode === 413
  );
}
