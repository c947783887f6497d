/** Names of errors for messages that SQS never accepts. */
const finalErrors: readonly string[] = [
  "InvalidMessageContents",
  "RequestEntityTooLarge",
  "RequestEntityTooLargeException",
];
const tooLarge = 413;
/**
 * SQS uses the same error name for a message that is too large and for parameters that the kind of
 * queue does not support.
 */
const tooLong = /must be shorter than \d+ bytes/;

/**
 * Returns whether the message caused the error of SendMessage, so that the queue will never accept
 * it. After a failure of the queue, the permissions or the connection, the same message may be sent
 * again. https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
 */
export function isFinalSendError(error: unknown): boolean {
  const { name, message, $metadata } = Object(error) as SendError; // safe: every member is optional
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
