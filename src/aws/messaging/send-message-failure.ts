/** Names of errors of a message that SQS will never take. */
const finalErrors: readonly string[] = [
  "InvalidMessageContents",
  "RequestEntityTooLarge",
  "RequestEntityTooLargeException",
];
const tooLarge = 413;
/** SQS gives a message that is too large the same error name as one with parameters for another kind of queue. */
const tooLong = /must be shorter than \d+ bytes/;

/**
 * Whether a message is to blame for what SendMessage threw, so that the queue will never take it. After a fault of the queue,
 * of permissions or of the connection the same message may be sent again.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export function isFinalSendError(error: unknown): boolean {
  const { name, message, $metadata } = Object(error) as SendError; // safe: any member of an object may be read
  return (
    finalErrors.includes(String(name)) ||
    $metadata?.httpStatusCode === tooLarge ||
    tooLong.test(String(message))
  );
}

interface SendError {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number };
}
