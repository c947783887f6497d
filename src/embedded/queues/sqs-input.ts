import { type Input, textReader } from "../service/service.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";

export const { optionalText, text: requiredText } = textReader((member, wrong) =>
  wrong === undefined
    ? missingParameter(member)
    : invalidParameter(member, JSON.stringify(wrong), "Must be a text."),
);

export function missingParameter(member: string): SqsError {
  return new SqsError("MissingParameter", `The request must contain the parameter ${member}.`);
}

export function optionalWhole(
  input: Input,
  member: string,
  least: number,
  most: number,
): number | undefined {
  const value = input[member] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    const reason = `Must be between ${least} and ${most}, if provided.`;
    throw invalidParameter(member, JSON.stringify(value), reason);
  }
  return value;
}

export function texts(input: Input, member: string): readonly string[] {
  const value = input[member] ?? [];
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string"))
    throw invalidParameter(member, JSON.stringify(value), "Must be a list of texts.");
  return value;
}
