import { createHash } from "node:crypto";
import { isRecord } from "../../base/errors/option-table.ts";
import type { Input } from "../service/service.ts";
import { invalidParameter } from "./sqs-input.ts";

const names = /^(?!\.)(?!.*\.\.)[\w.-]{1,256}(?<!\.)$/;
const types = /^(String|Number|Binary)(\.[^\s]{1,240})?$/;

/** `BinaryValue` is in Base64. */
export interface MessageAttribute {
  readonly DataType: string;
  readonly StringValue?: string;
  readonly BinaryValue?: string;
}

export type MessageAttributes = Readonly<Record<string, MessageAttribute>>;

export function readMessageAttributes(value: unknown): MessageAttributes | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value))
    throw invalidParameter("MessageAttributes", JSON.stringify(value), "Must be a map.");
  const entries = Object.entries(value);
  if (entries.length > 10) {
    const reason = "Number of message attributes exceeds the allowed maximum [10].";
    throw invalidParameter("MessageAttributes", entries.length, reason);
  }
  return nonEmpty(entries.map(([name, attribute]) => [name, readAttribute(name, attribute)]));
}

export function sizeOfAttributes(attributes: MessageAttributes = {}) {
  return Object.entries(attributes).reduce(
    (sum, [name, one]) => sum + Buffer.byteLength(name + one.DataType) + bytesOf(one).length,
    0,
  );
}

/** Wanted by name, by prefix (`trace.*`) or as `All`. */
export function chooseAttributes(
  attributes: MessageAttributes = {},
  wanted: readonly string[],
): MessageAttributes | undefined {
  const isWanted = (name: string) =>
    wanted.some(
      (pattern) =>
        pattern === "All" ||
        pattern === name ||
        (pattern.endsWith(".*") && name.startsWith(pattern.slice(0, -2))),
    );
  return nonEmpty(Object.entries(attributes).filter(([name]) => isWanted(name)));
}

/** Members that have a value and are wanted by their name, or by `All`. */
export function chosen(
  members: Readonly<Record<string, string | undefined>>,
  wanted: readonly string[],
) {
  const isWanted = (name: string) => wanted.includes("All") || wanted.includes(name);
  return nonEmpty(
    Object.entries(members).filter(([name, value]) => value !== undefined && isWanted(name)),
  );
}

function nonEmpty<Value>(
  entries: readonly (readonly [string, Value])[],
): Readonly<Record<string, Value>> | undefined {
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

export function digestOfAttributes(attributes: MessageAttributes) {
  const hash = createHash("md5");
  const add = (bytes: Uint8Array) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  };
  const sorted = Object.entries(attributes).sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [name, attribute] of sorted) {
    add(Buffer.from(name));
    add(Buffer.from(attribute.DataType));
    hash.update(Buffer.of(attribute.BinaryValue === undefined ? 1 : 2));
    add(bytesOf(attribute));
  }
  return hash.digest("hex");
}

function readAttribute(name: string, attribute: unknown): MessageAttribute {
  const refuse = (reason: string) =>
    invalidParameter(`MessageAttributes.${name}`, JSON.stringify(attribute), reason);
  if (!names.test(name) || !isRecord(attribute))
    throw refuse("Its name or its value is not valid for an attribute.");
  const { DataType }: Input = attribute;
  if (typeof DataType !== "string" || !types.test(DataType))
    throw refuse("Its DataType has to be String, Number or Binary.");
  const member = DataType.startsWith("Binary") ? "BinaryValue" : "StringValue";
  const value = attribute[member];
  if (typeof value !== "string" || value === "")
    throw refuse(`It has no value of the type ${DataType}.`);
  return { DataType, [member]: value };
}

function bytesOf({ StringValue, BinaryValue }: MessageAttribute) {
  return BinaryValue === undefined
    ? Buffer.from(String(StringValue))
    : Buffer.from(BinaryValue, "base64");
}
