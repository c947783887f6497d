import type { PutEventsResultEntry } from "@aws-sdk/client-eventbridge";
import type { Refusal } from "../../parts/messages/outbox.ts";

/** A call of PutEvents that failed as a whole. */
export interface CallFailure extends Refusal {
  /** Whether one of its entries may be to blame, so that the others would be taken without it. */
  readonly mayBeOneEntrys: boolean;
}

const maxReasonLength = 500;

/**
 * Codes of entries that will never be taken. Those that speak of permissions or the account are the deployment's: mended
 * there, the same entry goes.
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

/** The bus and the source are the same for every event: where these are refused no event is to blame. */
const ofDeployment = /event ?bus|(?:Parameter |at '[\w.]*)(?:source|endpointId)\b/i;

/** Why an entry was not taken, `undefined` where it was. */
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
 * Reads what a call threw.
 *
 * | | final where it is one entry | one by one |
 * |---|---|---|
 * | what was sent is refused | yes | yes |
 * | bus or source are refused | no | no |
 * | the service failed (5xx) | no | yes |
 * | throttled, not allowed, no connection, anything else | no | no |
 */
export function callFailure(error: unknown): CallFailure {
  const { name, $fault, $metadata } = error as ServiceError; // safe: whatever it is, members of it may be asked for
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

/** `Value '…' at 'entries.1.member.detail' failed to …`: the value may be the payload, which is nobody's to log. */
function withoutValues(message: string): string {
  return message.replace(/Value '.*' at '/s, "Value at '");
}

function bounded(reason: string): string {
  return reason.slice(0, maxReasonLength);
}
