import { ServiceError } from "../service/service.ts";

const generic = "com.amazon.coral.service";
const modelled = "com.amazonaws.sqs";
const legacy = "AWS.SimpleQueueService";

/** Type in the JSON protocol, code in the query protocol. The SDK reads both. */
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

export type SqsErrorName = keyof typeof errors;

export class SqsError extends ServiceError {
  readonly code: string;

  constructor(name: SqsErrorName, message: string) {
    const [type, code] = errors[name];
    super(type, message, { headers: { "x-amzn-query-error": `${code};Sender` } });
    this.code = code;
  }
}

export function invalidParameter(name: string, value: unknown, reason: string): SqsError {
  return new SqsError(
    "InvalidParameterValue",
    `Value ${String(value).slice(0, 200)} for parameter ${name} is invalid. Reason: ${reason}`,
  );
}
