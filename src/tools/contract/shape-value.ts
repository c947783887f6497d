import { canonical } from "../../app/openapi/canonical.ts";
import {
  itemOf,
  propertyOf,
  type Schema,
  type Shape,
  type Tag,
  typeOf,
  typeOfValue,
} from "./shape.ts";

export type Answer = boolean | undefined;
type Accepts = (schema: Schema, value: unknown) => Answer;

export function matches(shape: Shape, value: unknown, accepts: Accepts): Answer {
  if (typeOf(shape) !== typeOfValue(value)) return false;
  const tags = [...shape.tags.values()].map((tag) => isKept(tag, value));
  if (shape.kind === "value") return every([canonical(shape.value) === canonical(value), ...tags]);
  const size = sizeOf(value);
  const isWithin =
    (shape.least.isOpen ? size > shape.least.at : size >= shape.least.at) &&
    (shape.most.isOpen ? size < shape.most.at : size <= shape.most.at);
  return every([isWithin, ...tags, ...parts(shape, value, accepts)]);
}

function every(answers: readonly Answer[]): Answer {
  if (answers.includes(false)) return false;
  return answers.includes(undefined) ? undefined : true;
}

function parts(shape: Shape, value: unknown, accepts: Accepts): readonly Answer[] {
  // Safe casts: the value has the shape's type.
  if (shape.kind === "array")
    return (value as readonly unknown[]).map((item, index) => accepts(itemOf(shape, index), item));
  if (shape.kind !== "object") return [];
  return [
    ...[...shape.required].map((name) => Object.hasOwn(value as object, name)),
    ...Object.entries(value as object).flatMap(([name, member]) => [
      accepts(shape.names, name),
      accepts(propertyOf(shape, name), member),
    ]),
  ];
}

function sizeOf(value: unknown) {
  if (typeof value === "number") return value;
  // Safe cast: only lists and objects are left.
  return typeof value === "string" ? [...value].length : Object.keys(value as object).length;
}

function isKept({ keyword, value: rule }: Tag, value: unknown): Answer {
  if (keyword === "multipleOf") return Number.isInteger(Number(value) / Number(rule));
  if (keyword === "uniqueItems") {
    // Safe cast: only lists have this rule.
    const texts = (value as readonly unknown[]).map(canonical);
    return new Set(texts).size === texts.length;
  }
  if (keyword !== "pattern") return undefined;
  try {
    return new RegExp(String(rule), "u").test(String(value));
  } catch {
    return undefined; // the meaning of an invalid pattern is unknown
  }
}
