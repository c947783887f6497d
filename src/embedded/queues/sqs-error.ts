import { ServiceError } from "../service/service.ts";

const legacy = "AWS.SimpleQueueService.";

/** Prefix of an error's code in the query protocol. The SDK reads the JSON protocol as well. */
const prefixes = {
  BatchEntryIdsNotDistinct: legacy,
  BatchRequestTooLong: legacy,
  EmptyBatchRequest: legacy,
  InvalidAttributeName: "",
  InvalidAttributeValue: "",
  InvalidBatchEntryId: legacy,
  InvalidMessageContents: "",
  InvalidParameterValue: "",
  MessageNotInflight: legacy,
  MissingParameter: "",
  QueueDoesNotExist: legacy,
  QueueNameExists: "",
  ReceiptHandleIsInvalid: "",
  ResourceNotFoundException: "",
  TooManyEntriesInBatchRequest: legacy,
};

/** Types and codes that do not contain the SDK's name of the error. */
const types: Readonly<Record<string, string>> = {
  InvalidParameterValue: "com.amazon.coral.service#InvalidParameterValueException",
  MissingParameter: "com.amazon.coral.service#MissingRequiredParameterException",
};
const codes: Readonly<Record<string, string>> = {
  QueueDoesNotExist: "NonExistentQueue",
  QueueNameExists: "QueueAlreadyExists",
};

export class SqsError extends ServiceError {
  readonly code: string;

  constructor(name: keyof typeof prefixes, message: string) {
    const code = prefixes[name] + (codes[name] ?? name);
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
