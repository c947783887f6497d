import { isRecord } from "../../base/errors/option-table.ts";
import { type Input, parsed, ServiceError } from "../service/service.ts";

export type EventPattern = (event: unknown) => boolean;

type Condition = (values: readonly unknown[]) => boolean;

/** Knows exact values, `prefix`, `anything-but` and `exists`. @throws ServiceError */
export function readEventPattern(text: string): EventPattern {
  const pattern = parsed(text);
  if (pattern === undefined) throw invalidPattern("It is not JSON");
  if (!isRecord(pattern)) throw invalidPattern("Filter is not an object");
  return readFields(pattern, "");
}

export function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function readFields(pattern: Input, place: string): EventPattern {
  const fields = Object.entries(pattern).map(([name, expected]): EventPattern => {
    const path = place === "" ? name : `${place}.${name}`;
    const fits = readField(expected, path);
    return (event) => fits(fieldOf(event, name));
  });
  if (fields.length === 0)
    throw invalidPattern(`Empty objects are not allowed${place === "" ? "" : ` at ${place}`}`);
  return (event) => fields.every((fits) => fits(event));
}

function readField(expected: unknown, place: string): EventPattern {
  if (isRecord(expected)) {
    const fits = readFields(expected, place);
    return (value) => (Array.isArray(value) && value.length > 0 ? value.some(fits) : fits(value));
  }
  if (!Array.isArray(expected)) throw invalidPattern(`"${place}" must be an object or an array`);
  if (expected.length === 0) throw invalidPattern(`Empty arrays are not allowed at "${place}"`);
  const conditions = expected.map((condition) => readCondition(condition, place));
  return (value) => {
    const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return conditions.some((fits) => fits(values));
  };
}

function readCondition(condition: unknown, place: string): Condition {
  if (isLeaf(condition)) return (values) => values.includes(condition);
  const [[operator, operand] = [], ...more] = isRecord(condition) ? Object.entries(condition) : [];
  if (more.length === 0) {
    if (operator === "prefix" && typeof operand === "string") return beginsWith(operand);
    if (operator === "exists" && typeof operand === "boolean")
      return (values) => values.length > 0 === operand;
    if (operator === "anything-but") return anythingBut(operand, place);
  }
  throw invalidPattern(
    `The embedded stack knows no ${JSON.stringify(condition)} at "${place}": exact values, prefix, exists and anything-but`,
  );
}

function anythingBut(operand: unknown, place: string): Condition {
  const prefix = fieldOf(operand, "prefix");
  if (typeof prefix === "string") {
    const begins = beginsWith(prefix);
    return (values) => values.some((value) => !begins([value]));
  }
  const excluded: unknown[] = Array.isArray(operand) ? operand : [operand];
  if (excluded.length === 0 || !excluded.every(isLeaf))
    throw invalidPattern(`anything-but has no values at "${place}"`);
  return (values) => values.some((value) => !excluded.includes(value));
}

function beginsWith(prefix: string): Condition {
  return (values) => values.some((value) => typeof value === "string" && value.startsWith(prefix));
}

function isLeaf(value: unknown) {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function invalidPattern(reason: string) {
  return new ServiceError(
    "com.amazonaws.eventbridge#InvalidEventPatternException",
    `Event pattern is not valid. Reason: ${reason.slice(0, 500)}`,
  );
}
