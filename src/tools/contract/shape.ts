import { canonical } from "../../app/openapi/canonical.ts";
import type { JsonSchema } from "../../app/openapi/schema.ts";

export type SchemaNode = boolean | JsonSchema;

/** Schema with the document in which its references are resolved. */
export interface Located {
  readonly node: SchemaNode;
  readonly root: SchemaNode;
}

/** Schemas that all apply. An empty list accepts any value. */
export type Schema = readonly Located[];

export interface Limit {
  readonly at: number;
  readonly isOpen: boolean;
}

export interface Tag {
  readonly keyword: string;
  readonly value: unknown;
}

export type Tags = ReadonlyMap<string, Tag>;

export interface Ranged {
  /** Limits a number's value, or the count of characters, items or properties. */
  readonly least: Limit;
  readonly most: Limit;
  readonly tags: Tags;
}

export interface ValueShape {
  readonly kind: "value";
  readonly value: unknown;
  readonly tags: Tags;
}

interface ScalarShape extends Ranged {
  readonly kind: "number" | "string";
}

export interface ArrayShape extends Ranged {
  readonly kind: "array";
  readonly prefix: readonly Schema[];
  readonly rest: Schema;
}

export interface ObjectShape extends Ranged {
  readonly kind: "object";
  readonly properties: ReadonlyMap<string, Schema>;
  readonly required: ReadonlySet<string>;
  /** Schema of unnamed properties; `undefined` if they are not mentioned. */
  readonly additional: Schema | undefined;
  readonly names: Schema;
}

export type RangedShape = ScalarShape | ArrayShape | ObjectShape;
/** One alternative: values of one kind, which tags can restrict further. */
export type Shape = ValueShape | RangedShape;

export const noTags: Tags = new Map();

/** Keyword of a rule that equals no other rule. */
export const unsureKeyword = "(unsure)";

export function tagOf(keyword: string, value: unknown): readonly [string, Tag] {
  return [`${keyword} ${canonical(value)}`, { keyword, value }];
}

export function tagged(
  shapes: readonly Shape[],
  keyword: string,
  value: unknown,
): readonly Shape[] {
  return shapes.map((shape) => ({
    ...shape,
    tags: new Map([...shape.tags, tagOf(keyword, value)]),
  }));
}

/** Whether `one`, as a lower limit, allows fewer values. */
export function isHigher(one: Limit, other: Limit) {
  return one.at > other.at || (one.at === other.at && one.isOpen && !other.isOpen);
}

export function isLower(one: Limit, other: Limit) {
  return one.at < other.at || (one.at === other.at && one.isOpen && !other.isOpen);
}

export function itemOf({ prefix, rest }: ArrayShape, index: number): Schema {
  return prefix[index] ?? rest;
}

export function propertyOf({ properties, additional = [] }: ObjectShape, name: string): Schema {
  return properties.get(name) ?? additional;
}

export function isRefusal(schema: Schema | undefined) {
  return schema?.some(({ node }) => node === false) ?? false;
}

export function typeOf(shape: Shape) {
  return shape.kind === "value" ? typeOfValue(shape.value) : shape.kind;
}

export function typeOfValue(value: unknown) {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export function allOf(...schemas: readonly Schema[]): Schema {
  return [...new Map(schemas.flat().map((located) => [textOf(located), located])).values()];
}

export function textOf({ node, root }: Located) {
  const text = canonical(node);
  return text.includes('"$ref"') ? `${text} in ${canonical(root)}` : text;
}

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
