import type { PutEventsResultEntry } from "@aws-sdk/client-eventbridge";
import type { Refusal } from "../../parts/messages/outbox.ts";

interface CallFailure extends Refusal {
  /** Whether one entry may be the cause, so that the others would succeed without it. */
  readonly mayBeOneEntrys: boolean;
}

const maxReasonLength = 500;

/**
 * Codes of entries that EventBridge never accepts. Excludes errors of permissions and of the
 * account, which a deployment can fix.
 * https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
 */
const finalCodes: readonly string[] = ["InvalidArgument", "MalformedDetail", "RedactionFailure"];
const finalErrors: readonly string[] = [
  "ValidationException",
  "SerializationException",
  "RequestEntityTooLarge",
  "RequestEntityTooLargeException",
];
const tooLarge = 413;

/** Errors about the bus or the source, which are the same for every event. */
const ofDeployment = /event ?bus|(?:Parameter |at '[\w.]*)(?:source|endpointId)\b/i;

/** Returns why EventBridge refused an entry; `undefined` for an accepted entry. */
export function entryRefusal({
  EventId,
  ErrorCode = "no answer",
  ErrorMessage = "",
}: PutEventsResultEntry = {}): Refusal | undefined {
  if (EventId !== undefined) return undefined;
  const isFinal = finalCodes.includes(ErrorCode) && !ofDeployment.test(ErrorMessage);
  return { reason: bounded(`${ErrorCode} ${ErrorMessage}`.trim()), isFinal };
}

/**
 * Classifies the error of a whole call.
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
  const status = $metadata?.httpStatusCode ?? 0;
  const reason = bounded(withoutValues(String(error)));
  const isFinal =
    (finalErrors.includes(String(name)) || status === tooLarge) && !ofDeployment.test(reason);
  return { reason, isFinal, mayBeOneEntrys: isFinal || $fault === "server" || status >= 500 };
}

interface ServiceError {
  readonly name?: unknown;
  readonly $fault?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** Removes values from an error message: a value may be the payload, which must not be logged. */
function withoutValues(message: string): string {
  return message.replace(/Value '.*' at '/s, "Value at '");
}

function bounded(reason: string): string {
  return reason.slice(0, maxReasonLength);
}
