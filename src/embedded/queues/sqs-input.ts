import type { Input } from "../service/service.ts";
import { invalidParameter, SqsError } from "./sqs-error.ts";

export function requiredText(input: Input, member: string): string {
  const value = optionalText(input, member);
  if (value === undefined || value === "") {
    throw new SqsError("MissingParameter", `The request must contain the parameter ${member}.`);
  }
  return value;
}

export function optionalText(input: Input, member: string): string | undefined {
  const value = input[member] ?? undefined;
  if (value !== undefined && typeof value !== "string")
    throw invalidParameter(member, JSON.stringify(value), "Must be a text.");
  return value;
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
    throw invalidParameter(
      member,
      JSON.stringify(value),
      `Must be between ${least} and ${most}, if provided.`,
    );
  }
  return value;
}

export function texts(input: Input, member: string): readonly string[] {
  const value = input[member] ?? [];
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) {
    throw invalidParameter(member, JSON.stringify(value), "Must be a list of texts.");
  }
  return value;
}
