const finalErrors: readonly string[] = [
  "InvalidMessageContents",
  "RequestEntityTooLarge",
  "RequestEntityTooLargeException",
];
const tooLarge = 413;
/** SQS uses one name for messages that are too long and for unsupported parameters. */
const tooLong = /must be shorter than \d+ bytes/;

/**
 * Whether SQS will never accept the message.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
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
