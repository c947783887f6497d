import { type Input, ServiceError, textReader } from "../service/service.ts";

const legacy = "AWS.SimpleQueueService.";

/** Codes of SQS's older query protocol that differ from the name of the error. */
const codes: Readonly<Record<string, string>> = {
  BatchEntryIdsNotDistinct: `${legacy}BatchEntryIdsNotDistinct`,
  BatchRequestTooLong: `${legacy}BatchRequestTooLong`,
  EmptyBatchRequest: `${legacy}EmptyBatchRequest`,
  InvalidBatchEntryId: `${legacy}InvalidBatchEntryId`,
  MessageNotInflight: `${legacy}MessageNotInflight`,
  QueueDoesNotExist: `${legacy}NonExistentQueue`,
  QueueNameExists: "QueueAlreadyExists",
  TooManyEntriesInBatchRequest: `${legacy}TooManyEntriesInBatchRequest`,
};

/** Types that do not contain the error's name in the SDK. */
const types: Readonly<Record<string, string>> = {
  InvalidParameterValue: "com.amazon.coral.service#InvalidParameterValueException",
  MissingParameter: "com.amazon.coral.service#MissingRequiredParameterException",
};

export class SqsError extends ServiceError {
  readonly code: string;

  constructor(name: string, message: string) {
    const code = codes[name] ?? name;
    super(types[name] ?? `com.amazonaws.sqs#${name}`, message, {
      headers: { "x-amzn-query-error": `${code};Sender` },
    });
    this.code = code;
  }
}

export function invalidParameter(name: string, value: unknown, reason: string) {
  return new SqsError(
    "InvalidParameterValue",
    `Value ${String(value).slice(0, 200)} for parameter ${name} is invalid. Reason: ${reason}`,
  );
}

export function missingParameter(member: string) {
  return new SqsError("MissingParameter", `The request must contain the parameter ${member}.`);
}

export const { optionalText, text: requiredText } = textReader((member, wrong) =>
  wrong === undefined
    ? missingParameter(member)
    : invalidParameter(member, JSON.stringify(wrong), "Must be a string."),
);

export function optionalWhole(input: Input, member: string, least: number, most: number) {
  const value = input[member] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most)
    return value;
  const reason = `Must be between ${least} and ${most}, if provided.`;
  throw invalidParameter(member, JSON.stringify(value), reason);
}

export function texts(input: Input, member: string): readonly string[] {
  const value = input[member] ?? [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw invalidParameter(member, JSON.stringify(value), "Must be a list of strings.");
}
