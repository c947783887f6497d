import { ServiceError } from "../service/service.ts";

const legacy = "AWS.SimpleQueueService.";

/** Error codes of SQS's older query protocol, for the header `x-amzn-query-error`. */
const codes = {
  BatchEntryIdsNotDistinct: `${legacy}BatchEntryIdsNotDistinct`,
  BatchRequestTooLong: `${legacy}BatchRequestTooLong`,
  EmptyBatchRequest: `${legacy}EmptyBatchRequest`,
  InvalidAttributeName: "InvalidAttributeName",
  InvalidAttributeValue: "InvalidAttributeValue",
  InvalidBatchEntryId: `${legacy}InvalidBatchEntryId`,
  InvalidMessageContents: "InvalidMessageContents",
  InvalidParameterValue: "InvalidParameterValue",
  MessageNotInflight: `${legacy}MessageNotInflight`,
  MissingParameter: "MissingParameter",
  QueueDoesNotExist: `${legacy}NonExistentQueue`,
  QueueNameExists: "QueueAlreadyExists",
  ReceiptHandleIsInvalid: "ReceiptHandleIsInvalid",
  ResourceNotFoundException: "ResourceNotFoundException",
  TooManyEntriesInBatchRequest: `${legacy}TooManyEntriesInBatchRequest`,
};

/** Types of errors that do not contain the error's name in the SDK. */
const types: Readonly<Record<string, string>> = {
  InvalidParameterValue: "com.amazon.coral.service#InvalidParameterValueException",
  MissingParameter: "com.amazon.coral.service#MissingRequiredParameterException",
};

export class SqsError extends ServiceError {
  readonly code: string;

  constructor(name: keyof typeof codes, message: string) {
    const code = codes[name];
    super(types[name] ?? `com.amazonaws.sqs#${name}`, message, {
      headers: { "x-amzn-query-error": `${code};Sender` },
    });
    this.code = code;
  }
}

export function invalidParameter(name: string, value: unknown, reason: string): SqsError {
  return new SqsError(
    "InvalidParameterValue",
    `Value ${String(value).slice(0, 200)} for parameter ${name} is invalid. Reason: ${reason}`,
  );
}
