import { canonical } from "../../app/openapi/canonical.ts";

/** A JSON Schema of draft 2020-12, wherever it was read. */
export type SchemaNode = boolean | Readonly<Record<string, unknown>>;

/** A schema beside the document that its references are looked up in. */
export interface Located {
  readonly node: SchemaNode;
  readonly root: SchemaNode;
}

/** Schemas that all apply; none accepts anything. */
export type Schema = readonly Located[];

/** The end of a range. */
export interface Limit {
  readonly at: number;
  readonly isOpen: boolean;
}

/** A rule that is known by its keyword and value alone. */
export interface Tag {
  readonly keyword: string;
  readonly value: unknown;
}

/** Rules by their text. */
export type Tags = ReadonlyMap<string, Tag>;

interface Ranged {
  /** Of a number its value, of a text its characters, of a list its items, of an object its properties. */
  readonly least: Limit;
  readonly most: Limit;
  readonly tags: Tags;
}

/** One value: of `enum`, of `const`, `true`, `null`. */
export interface ValueShape {
  readonly kind: "value";
  readonly value: unknown;
  readonly tags: Tags;
}

/** Numbers or texts. */
export interface ScalarShape extends Ranged {
  readonly kind: "number" | "string";
}

/** Lists. */
export interface ArrayShape extends Ranged {
  readonly kind: "array";
  readonly prefix: readonly Schema[];
  readonly rest: Schema;
}

/** Objects. */
export interface ObjectShape extends Ranged {
  readonly kind: "object";
  readonly properties: ReadonlyMap<string, Schema>;
  readonly required: ReadonlySet<string>;
  /** Of properties that it does not name; `undefined` where it says nothing of them. */
  readonly additional: Schema | undefined;
  readonly names: Schema;
}

/** One of the alternatives that a schema comes to: values of one kind. Without its tags it accepts at least as much. */
export type Shape = ValueShape | ScalarShape | ArrayShape | ObjectShape;

export const noTags: Tags = new Map();

/** The keyword of a rule that is the same as no other. */
export const unsureKeyword = "(unsure)";

/** A rule with the text that it is known by. */
export function tagOf(keyword: string, value: unknown): readonly [string, Tag] {
  return [`${keyword} ${canonical(value)}`, { keyword, value }];
}

/** The shapes, each under one more rule. */
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

/** Whether fewer values follow `one` than `other`. */
export function isHigher(one: Limit, other: Limit): boolean {
  return one.at > other.at || (one.at === other.at && one.isOpen && !other.isOpen);
}

/** Whether fewer values go before `one` than before `other`. */
export function isLower(one: Limit, other: Limit): boolean {
  return one.at < other.at || (one.at === other.at && one.isOpen && !other.isOpen);
}

/** What the item at an index has to be. */
export function itemOf({ prefix, rest }: ArrayShape, index: number): Schema {
  return prefix[index] ?? rest;
}

/** What a property has to be. */
export function propertyOf({ properties, additional = [] }: ObjectShape, name: string): Schema {
  return properties.get(name) ?? additional;
}

/** Whether a schema says that nothing fits it. */
export function isRefusal(schema: Schema | undefined): boolean {
  return schema?.some(({ node }) => node === false) ?? false;
}

/** The type of what a shape accepts. */
export function typeOf(shape: Shape): string {
  return shape.kind === "value" ? typeOfValue(shape.value) : shape.kind;
}

/** The type of a value, as JSON Schema calls it. */
export function typeOfValue(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Schemas that all apply, each once. */
export function allOf(...schemas: readonly Schema[]): Schema {
  return [...new Map(schemas.flat().map((located) => [textOf(located), located])).values()];
}

/** The same text says the same schema. */
export function textOf({ node, root }: Located): string {
  const text = canonical(node);
  return text.includes('"$ref"') ? `${text} in ${canonical(root)}` : text;
}
