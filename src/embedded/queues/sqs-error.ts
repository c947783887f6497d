import { ServiceError } from "../service/service.ts";

const generic = "com.amazon.coral.service";
const modelled = "com.amazonaws.sqs";
const legacy = "AWS.SimpleQueueService";

/** The type that the JSON protocol has, and the code that its predecessor had: the SDK looks at both. */
const errors = {
  BatchEntryIdsNotDistinct: [
    `${modelled}#BatchEntryIdsNotDistinct`,
    `${legacy}.BatchEntryIdsNotDistinct`,
  ],
  BatchRequestTooLong: [`${modelled}#BatchRequestTooLong`, `${legacy}.BatchRequestTooLong`],
  EmptyBatchRequest: [`${modelled}#EmptyBatchRequest`, `${legacy}.EmptyBatchRequest`],
  InvalidAttributeName: [`${modelled}#InvalidAttributeName`, "InvalidAttributeName"],
  InvalidAttributeValue: [`${modelled}#InvalidAttributeValue`, "InvalidAttributeValue"],
  InvalidBatchEntryId: [`${modelled}#InvalidBatchEntryId`, `${legacy}.InvalidBatchEntryId`],
  InvalidMessageContents: [`${modelled}#InvalidMessageContents`, "InvalidMessageContents"],
  InvalidParameterValue: [`${generic}#InvalidParameterValueException`, "InvalidParameterValue"],
  MessageNotInflight: [`${modelled}#MessageNotInflight`, `${legacy}.MessageNotInflight`],
  MissingParameter: [`${generic}#MissingRequiredParameterException`, "MissingParameter"],
  QueueDoesNotExist: [`${modelled}#QueueDoesNotExist`, `${legacy}.NonExistentQueue`],
  QueueNameExists: [`${modelled}#QueueNameExists`, "QueueAlreadyExists"],
  ReceiptHandleIsInvalid: [`${modelled}#ReceiptHandleIsInvalid`, "ReceiptHandleIsInvalid"],
  ResourceNotFoundException: [`${modelled}#ResourceNotFoundException`, "ResourceNotFoundException"],
  TooManyEntriesInBatchRequest: [
    `${modelled}#TooManyEntriesInBatchRequest`,
    `${legacy}.TooManyEntriesInBatchRequest`,
  ],
} as const;

/** The errors of SQS, by the names that the SDK gives them. */
export type SqsErrorName = keyof typeof errors;

/** An error as SQS answers it. */
export class SqsError extends ServiceError {
  /** What an entry of a batch says of it. */
  readonly code: string;

  constructor(name: SqsErrorName, message: string) {
    const [type, code] = errors[name];
    super(type, message, { headers: { "x-amzn-query-error": `${code};Sender` } });
    this.code = code;
  }
}

/** The answer to a value that SQS does not take. */
export function invalidParameter(name: string, value: unknown, reason: string): SqsError {
  return new SqsError(
    "InvalidParameterValue",
    `Value ${String(value).slice(0, 200)} for parameter ${name} is invalid. Reason: ${reason}`,
  );
}
