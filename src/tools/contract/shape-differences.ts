import { canonical } from "../../app/openapi/canonical.ts";
import { accepts } from "./schema-shapes.ts";
import {
  isHigher,
  isLower,
  isRefusal,
  type Limit,
  matches,
  type ObjectShape,
  type RangedShape,
  type Shape,
  type Tag,
  typeOf,
  unsureKeyword,
  type ValueShape,
} from "./shape.ts";

export type DifferenceKind =
  | "type"
  | "changed-type"
  | "value"
  | "values"
  | "least"
  | "most"
  | "multiple-of"
  | "pattern"
  | "format"
  | "unique-items"
  | "required"
  | "named"
  | "unnamed"
  | "only-from"
  | "only-to"
  | "names"
  | "cannot-tell";

export type Difference = Readonly<ReturnType<typeof difference>>;

/** Whether a value may be rejected. A property that only one schema mentions is harmless. */
export function isRefusing({ kind }: Difference) {
  return kind !== "only-from" && kind !== "only-to";
}

/**
 * `path` is like `items[].name`, empty for the whole value. `type` is the type of the differing value,
 * or the type that a range limits.
 */
export function difference(
  path: string,
  kind: DifferenceKind,
  type: string,
  from: string,
  to: string,
) {
  return { path, kind, type, from, to };
}

export function valueDifferences(shape: ValueShape, alternatives: readonly Shape[], path: string) {
  const answers = alternatives.map((other) => matches(other, shape.value, accepts));
  if (answers.includes(true) || alternatives.some((other) => isSame(shape, other))) return [];
  const kind = answers.includes(undefined) ? "cannot-tell" : "value";
  return [difference(path, kind, typeOf(shape), shown(shape), alternatives.map(shown).join(", "))];
}

function isSame(from: ValueShape, to: Shape) {
  const rules = [...to.tags].every(
    ([text, { keyword }]) => keyword !== unsureKeyword && from.tags.has(text),
  );
  return rules && to.kind === "value" && canonical(to.value) === canonical(from.value);
}

export function rangeDifferences(from: RangedShape, to: RangedShape, path: string) {
  const { least, most } = from.kind === "object" ? countsOf(from) : from;
  const limited = (kind: "least" | "most") =>
    difference(path, kind, from.kind, limitText(from[kind]), limitText(to[kind]));
  return [
    ...(isHigher(to.least, least) ? [limited("least")] : []),
    ...(isLower(to.most, most) ? [limited("most")] : []),
  ];
}

function countsOf({ least, most, required, additional, properties }: ObjectShape) {
  const named = isRefusal(additional) ? properties.size : Infinity;
  return {
    least: { ...least, at: Math.max(least.at, required.size) },
    most: { ...most, at: Math.min(most.at, named) },
  };
}

export function tagDifferences(from: RangedShape, to: RangedShape, path: string) {
  return [...to.tags].flatMap(([text, tag]) => {
    if (from.tags.has(text) || isImplied(tag, from)) return [];
    const before = [...from.tags.values()].filter(({ keyword }) => keyword === tag.keyword);
    const isInteger = tag.keyword === "multipleOf" && tag.value === 1;
    const kind = isInteger ? "type" : (tagKinds[tag.keyword] ?? "cannot-tell");
    const type = isInteger ? "number" : before.length === 0 ? "none" : "other";
    const was = before.map(({ value }) => String(value)).join(", ");
    const is = kind === "cannot-tell" ? tag.keyword : String(tag.value);
    return [difference(path, kind, type, was, is)];
  });
}

const tagKinds: Readonly<Record<string, DifferenceKind>> = {
  multipleOf: "multiple-of",
  pattern: "pattern",
  format: "format",
  uniqueItems: "unique-items",
  "x-keelson-takes-text": "changed-type",
};

/** A multiple of 6 is also a multiple of 3, and a list with one item has no duplicates. */
function isImplied({ keyword, value }: Tag, from: RangedShape) {
  if (keyword === "uniqueItems") return from.most.at <= 1;
  const isMultiple = (tag: Tag) =>
    tag.keyword === keyword && Number(tag.value) % Number(value) === 0;
  return (
    keyword === "multipleOf" && Number.isInteger(value) && [...from.tags.values()].some(isMultiple)
  );
}

export function shown(shape: Shape) {
  return shape.kind === "value" ? canonical(shape.value) : `any ${shape.kind}`;
}

function limitText({ at, isOpen }: Limit) {
  return Number.isFinite(at) ? `${at}${isOpen ? " (exclusive)" : ""}` : "none";
}
