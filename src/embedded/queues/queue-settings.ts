import { isRecord } from "../../base/errors/option-table.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";

export type QueueAttributes = Readonly<Record<string, string>>;

export interface QueueSettings {
  readonly fifo: boolean;
  readonly contentBasedDeduplication: boolean;
  readonly visibilitySeconds: number;
  readonly delaySeconds: number;
  readonly waitSeconds: number;
  readonly retentionMs: number;
  readonly maximumBytes: number;
  readonly redrive?: RedrivePolicy | undefined;
}

export interface RedrivePolicy {
  readonly deadLetterTargetArn: string;
  readonly maxReceiveCount: number;
}

export const longestMessageBytes = 262_144;

export const longestVisibilitySeconds = 43_200;

const wholes: Readonly<Record<string, readonly [least: number, most: number]>> = {
  DelaySeconds: [0, 900],
  MaximumMessageSize: [1024, longestMessageBytes],
  MessageRetentionPeriod: [60, 1_209_600],
  ReceiveMessageWaitTimeSeconds: [0, 20],
  VisibilityTimeout: [0, longestVisibilitySeconds],
};

const fifoOnly: Readonly<Record<string, readonly string[]>> = {
  FifoQueue: ["true"],
  ContentBasedDeduplication: ["true", "false"],
  DeduplicationScope: ["queue"],
  FifoThroughputLimit: ["perQueue"],
};

/** Without effect here. */
const inert: readonly string[] = [
  "Policy",
  "RedriveAllowPolicy",
  "KmsMasterKeyId",
  "KmsDataKeyReusePeriodSeconds",
  "SqsManagedSseEnabled",
];

const defaults: QueueAttributes = {
  DelaySeconds: "0",
  MaximumMessageSize: String(longestMessageBytes),
  MessageRetentionPeriod: String(4 * 24 * 60 * 60),
  ReceiveMessageWaitTimeSeconds: "0",
  VisibilityTimeout: "30",
};
const fifoDefaults: QueueAttributes = {
  ContentBasedDeduplication: "false",
  DeduplicationScope: "queue",
  FifoThroughputLimit: "perQueue",
};

/**
 * @throws SqsError InvalidAttributeName, InvalidAttributeValue or, for a redrive policy,
 * InvalidParameterValue.
 */
export function checkQueueAttributes(attributes: unknown, fifo: boolean): QueueAttributes {
  if (attributes === undefined || attributes === null) return {};
  if (!isRecord(attributes))
    throw invalidParameter("Attributes", JSON.stringify(attributes), "Must be a map.");
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, checked(name, value, fifo)]),
  );
}

export function effectiveAttributes(attributes: QueueAttributes): QueueAttributes {
  const all = {
    ...defaults,
    ...(attributes["FifoQueue"] === "true" ? fifoDefaults : {}),
    ...attributes,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
}

export function settingsOf(attributes: QueueAttributes): QueueSettings {
  const all = effectiveAttributes(attributes);
  const redrive = all["RedrivePolicy"];
  return {
    fifo: all["FifoQueue"] === "true",
    contentBasedDeduplication: all["ContentBasedDeduplication"] === "true",
    visibilitySeconds: Number(all["VisibilityTimeout"]),
    delaySeconds: Number(all["DelaySeconds"]),
    waitSeconds: Number(all["ReceiveMessageWaitTimeSeconds"]),
    retentionMs: Number(all["MessageRetentionPeriod"]) * 1000,
    maximumBytes: Number(all["MaximumMessageSize"]),
    redrive: redrive === undefined ? undefined : (JSON.parse(redrive) as RedrivePolicy), // redrivePolicy below wrote it
  };
}

export function isSettable(name: string): boolean {
  return (
    Object.hasOwn(wholes, name) ||
    Object.hasOwn(fifoOnly, name) ||
    inert.includes(name) ||
    name === "RedrivePolicy"
  );
}

function checked(name: string, value: unknown, fifo: boolean): string {
  const text = String(value);
  const allowed = fifoOnly[name];

  if (!isSettable(name) || (allowed !== undefined && !fifo)) {
    throw new SqsError("InvalidAttributeName", `Unknown Attribute ${name.slice(0, 200)}.`);
  }
  if (name === "RedrivePolicy" && text !== "") return redrivePolicy(text);
  if (allowed !== undefined && !allowed.includes(text))
    throw invalidAttribute(name, text, `has to be ${allowed.join(" or ")}`);
  const [least, most] = wholes[name] ?? [0, Infinity];
  if (name in wholes && (!/^\d{1,9}$/.test(text) || Number(text) < least || Number(text) > most))
    throw invalidAttribute(name, text, `has to be a whole number from ${least} to ${most}`);
  return text;
}

function redrivePolicy(text: string): string {
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch {
    throw invalidParameter("RedrivePolicy", text, "Amazon SQS can't parse it: it is not JSON.");
  }
  const { deadLetterTargetArn, maxReceiveCount } = isRecord(policy) ? policy : {};
  const count = Number(maxReceiveCount);
  if (
    typeof deadLetterTargetArn !== "string" ||
    !Number.isInteger(count) ||
    count < 1 ||
    count > 1000
  ) {
    throw invalidParameter(
      "RedrivePolicy",
      text,
      "It has to be a deadLetterTargetArn and a maxReceiveCount from 1 to 1000.",
    );
  }
  return JSON.stringify({ deadLetterTargetArn, maxReceiveCount: count } satisfies RedrivePolicy);
}

function invalidAttribute(name: string, value: string, reason: string): SqsError {
  return new SqsError(
    "InvalidAttributeValue",
    `Invalid value for the parameter ${name}: ${value.slice(0, 200)} ${reason}.`,
  );
}
