import { isRecord } from "../../base/errors/option-table.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import { parsed } from "../service/service.ts";
import { invalidParameter, SqsError } from "./sqs-input.ts";

export type QueueAttributes = Readonly<Record<string, string>>;

export type QueueSettings = ReturnType<typeof settingsOf>;

export interface RedrivePolicy {
  readonly deadLetterTargetArn: string;
  readonly maxReceiveCount: number;
}

const longestMessageBytes = serviceSizes.sqsMessage.maxBytes;

export const longestVisibilitySeconds = 43_200;

interface AttributeRule {
  readonly range?: readonly [least: number, most: number];
  /** Accepted values of an attribute that only FIFO queues have. */
  readonly ofFifo?: readonly string[];
  readonly otherwise?: string;
}

/** The entries after `RedrivePolicy` have no effect. */
const rules: Readonly<Record<string, AttributeRule>> = {
  DelaySeconds: { range: [0, 900], otherwise: "0" },
  MaximumMessageSize: { range: [1024, longestMessageBytes], otherwise: `${longestMessageBytes}` },
  MessageRetentionPeriod: { range: [60, 1_209_600], otherwise: `${4 * 24 * 60 * 60}` },
  ReceiveMessageWaitTimeSeconds: { range: [0, 20], otherwise: "0" },
  VisibilityTimeout: { range: [0, longestVisibilitySeconds], otherwise: "30" },
  FifoQueue: { ofFifo: ["true"] },
  ContentBasedDeduplication: { ofFifo: ["true", "false"], otherwise: "false" },
  DeduplicationScope: { ofFifo: ["queue"], otherwise: "queue" },
  FifoThroughputLimit: { ofFifo: ["perQueue"], otherwise: "perQueue" },
  RedrivePolicy: {},
  Policy: {},
  RedriveAllowPolicy: {},
  KmsMasterKeyId: {},
  KmsDataKeyReusePeriodSeconds: {},
  SqsManagedSseEnabled: {},
};

export function checkQueueAttributes(attributes: unknown, fifo: boolean): QueueAttributes {
  if (attributes === undefined || attributes === null) return {};
  if (!isRecord(attributes))
    throw invalidParameter("Attributes", JSON.stringify(attributes), "Must be a map.");
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, checked(name, String(value), fifo)]),
  );
}

export function effectiveAttributes(attributes: QueueAttributes): QueueAttributes {
  const defaults = Object.entries(rules).map(([name, { ofFifo, otherwise = "" }]) => [
    name,
    ofFifo === undefined || isFifo(attributes) ? otherwise : "",
  ]);
  const all: QueueAttributes = { ...Object.fromEntries(defaults), ...attributes };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
}

export function settingsOf(attributes: QueueAttributes) {
  const all = effectiveAttributes(attributes);
  const redrive = all["RedrivePolicy"];
  return {
    fifo: isFifo(all),
    contentBasedDeduplication: all["ContentBasedDeduplication"] === "true",
    visibilitySeconds: Number(all["VisibilityTimeout"]),
    delaySeconds: Number(all["DelaySeconds"]),
    waitSeconds: Number(all["ReceiveMessageWaitTimeSeconds"]),
    retentionMs: Number(all["MessageRetentionPeriod"]) * 1000,
    maximumBytes: Number(all["MaximumMessageSize"]),
    redrive: redrive === undefined ? undefined : (JSON.parse(redrive) as RedrivePolicy), // redrivePolicy() wrote the text
  };
}

export function isSettable(name: string) {
  return Object.hasOwn(rules, name);
}

export function unknownAttribute(name: string) {
  return new SqsError("InvalidAttributeName", `Unknown Attribute ${name.slice(0, 200)}.`);
}

function isFifo(attributes: QueueAttributes) {
  return attributes["FifoQueue"] === "true";
}

function checked(name: string, text: string, fifo: boolean) {
  const { range, ofFifo } = rules[name] ?? {};
  if (!isSettable(name) || (ofFifo !== undefined && !fifo)) throw unknownAttribute(name);
  if (name === "RedrivePolicy" && text !== "") return redrivePolicy(text);
  if (ofFifo?.includes(text) === false)
    throw invalidAttribute(name, text, `has to be ${ofFifo.join(" or ")}`);
  if (range === undefined) return text;
  const [least, most] = range;
  if (!/^\d{1,9}$/.test(text) || Number(text) < least || Number(text) > most)
    throw invalidAttribute(name, text, `has to be a whole number from ${least} to ${most}`);
  return text;
}

function redrivePolicy(text: string) {
  const policy = parsed(text);
  if (policy === undefined)
    throw invalidParameter("RedrivePolicy", text, "Amazon SQS can't parse it: it is not JSON.");
  const { deadLetterTargetArn, maxReceiveCount } = isRecord(policy) ? policy : {};
  const count = Number(maxReceiveCount);
  const isCount = Number.isInteger(count) && count >= 1 && count <= 1000;
  if (typeof deadLetterTargetArn === "string" && isCount)
    return JSON.stringify({ deadLetterTargetArn, maxReceiveCount: count } satisfies RedrivePolicy);
  const reason = "It has to be a deadLetterTargetArn and a maxReceiveCount from 1 to 1000.";
  throw invalidParameter("RedrivePolicy", text, reason);
}

function invalidAttribute(name: string, value: string, reason: string) {
  return new SqsError(
    "InvalidAttributeValue",
    `Invalid value for the parameter ${name}: ${value.slice(0, 200)} ${reason}.`,
  );
}
