import { canonical } from "../../app/openapi/canonical.ts";
import { decodePointer } from "../../app/openapi/schema.ts";
import {
  allTypes,
  knownKeywords,
  partOf,
  ruleOf,
  shapesOfTypes,
  valueShape,
} from "./keyword-shapes.ts";
import {
  type Answer,
  allOf,
  isHigher,
  isLower,
  isRefusal,
  itemOf,
  type Located,
  matches,
  noTags,
  type ObjectShape,
  propertyOf,
  type Schema,
  type SchemaNode,
  type Shape,
  tagged,
  tagOf,
  textOf,
  typeOf,
  unsureKeyword,
  type ValueShape,
} from "./shape.ts";

export class TooComplexError extends Error {}

const mostShapes = 300;
const mostLevels = 40;
const mostDiscriminators = 2;

/** Rules that a shape cannot express become tags. @throws TooComplexError */
export function shapesOf(schema: Schema, level = 0, isLoose = false): readonly Shape[] {
  if (level > mostLevels) throw new TooComplexError();
  return schema.reduce(
    (shapes, located) => intersections(shapes, shapesOfOne(located, level, isLoose), level),
    anything,
  );
}

export function accepts(schema: Schema, value: unknown, level = 0): Answer {
  return some(shapesOf(schema, level).map((shape) => matchesAt(shape, value, level)));
}

const anything = shapesOfTypes(allTypes, {}, {});

function matchesAt(shape: Shape, value: unknown, level: number): Answer {
  return matches(shape, value, (schema, part) => accepts(schema, part, level + 1));
}

function some(answers: readonly Answer[]): Answer {
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

function shapesOfOne(
  { node, root: document }: Located,
  level: number,
  isLoose: boolean,
): readonly Shape[] {
  if (typeof node === "boolean") return node ? anything : [];
  if (["{}", "true"].includes(canonical(node["not"] ?? false))) return [];
  // References resolve within the schema that has the `$id`.
  const root = "$id" in node ? node : document;
  const shapesOfPart = (part: unknown) => shapesOf(partOf(part, root), level + 1, isLoose);
  const and = (some: readonly Shape[], others: readonly Shape[]) =>
    intersections(some, others, level);
  const { type, enum: listed, $ref, allOf: all = [], anyOf, oneOf } = node;
  let shapes = shapesOfTypes(type === undefined ? allTypes : [type].flat().map(String), node, root);
  // Safe casts in this function: JSON Schema requires lists here.
  for (const values of [listed, "const" in node ? [node["const"]] : undefined]) {
    if (values !== undefined) shapes = and(shapes, (values as readonly unknown[]).map(valueShape));
  }
  for (const keyword of Object.keys(node).filter((name) => !knownKeywords.has(name))) {
    shapes = tagged(shapes, keyword, textOf({ node: ruleOf(keyword, node), root }));
  }
  if ($ref !== undefined) {
    const target = targetOf(String($ref), root);
    shapes =
      target === undefined
        ? tagged(shapes, "$ref", textOf({ node, root }))
        : and(shapes, shapesOfPart(target));
  }
  for (const part of all as readonly unknown[]) shapes = and(shapes, shapesOfPart(part));
  if (anyOf !== undefined)
    shapes = and(shapes, (anyOf as readonly unknown[]).flatMap(shapesOfPart));
  if (oneOf !== undefined) {
    const branches = (oneOf as readonly unknown[]).map(shapesOfPart);
    shapes = and(
      isLoose || areApart(branches, level)
        ? shapes
        : tagged(shapes, "oneOf", textOf({ node: { oneOf }, root })),
      branches.flat(),
    );
  }
  const { unevaluatedProperties: others = true } = node;
  if (others === true) return shapes;
  return (
    closed(shapes, partOf(others, root)) ??
    tagged(shapes, "unevaluatedProperties", textOf({ node, root }))
  );
}

/** `undefined` if another alternative or a rule might name unnamed properties. */
function closed(shapes: readonly Shape[], others: Schema): readonly Shape[] | undefined {
  const [one, ...more] = shapes.filter((shape) => typeOf(shape) === "object");
  if (one === undefined) return shapes;
  if (!isRefusal(others) || one.kind !== "object" || more.length > 0 || one.tags.size > 0)
    return undefined;
  const { additional = others } = one;
  return shapes.map((shape) => (shape === one ? { ...one, additional } : shape));
}

/** `undefined` if it is missing or in another document. */
function targetOf(reference: string, root: SchemaNode): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  const names = reference.slice(2).split("/").map(decodePointer);
  return names.reduce<unknown>(
    (node, name) => (Object.hasOwn(Object(node), name) ? Object(node)[name] : undefined),
    root,
  );
}

function areApart(branches: readonly (readonly Shape[])[], level: number) {
  return branches.every((branch, index) =>
    branches
      .slice(index + 1)
      .every((later) => branch.every((one) => later.every((other) => isApart(one, other, level)))),
  );
}

/** Whether no value matches both. Objects can differ in a property that both require. */
export function isApart(one: Shape, other: Shape, level = 0, depth = 0): boolean {
  if (typeOf(one) !== typeOf(other)) return true;
  if (one.kind === "value") return matchesAt(other, one.value, level) === false;
  if (other.kind === "value") return matchesAt(one, other.value, level) === false;
  if (one.least.at > other.most.at || other.least.at > one.most.at) return true;
  if (one.kind === "object" && other.kind === "object" && depth <= mostDiscriminators)
    return [...one.required].some(
      (name) => other.required.has(name) && arePropertiesApart(one, other, name, depth + 1),
    );
  return false;
}

function arePropertiesApart(one: ObjectShape, other: ObjectShape, name: string, depth: number) {
  const others = shapesOf(propertyOf(other, name), depth, true);
  return shapesOf(propertyOf(one, name), depth, true).every((first) =>
    others.every((second) => isApart(first, second, depth, depth)),
  );
}

function intersections(
  some: readonly Shape[],
  others: readonly Shape[],
  level: number,
): readonly Shape[] {
  const shapes = some.flatMap((one) =>
    others.flatMap((other) => intersection(one, other, level) ?? []),
  );
  if (shapes.length > mostShapes) throw new TooComplexError();
  return shapes;
}

function intersection(one: Shape, other: Shape, level: number): Shape | undefined {
  if (one.kind === "value") return valueWithin(one, other, level);
  if (other.kind === "value") return valueWithin(other, one, level);
  const ranged = {
    least: isHigher(one.least, other.least) ? one.least : other.least,
    most: isLower(one.most, other.most) ? one.most : other.most,
    tags: new Map([...one.tags, ...other.tags]),
  };
  if (one.kind === "array" && other.kind === "array") {
    const length = Math.max(one.prefix.length, other.prefix.length);
    const prefix = Array.from({ length }, (_, index) =>
      allOf(itemOf(one, index), itemOf(other, index)),
    );
    return { kind: "array", ...ranged, prefix, rest: allOf(one.rest, other.rest) };
  }
  if (one.kind === "object" && other.kind === "object")
    return { kind: "object", ...ranged, ...bothObjects(one, other) };
  // Safe cast: both shapes are numbers, or both are strings.
  return one.kind === other.kind ? ({ ...one, ...ranged } as Shape) : undefined;
}

function bothObjects(one: ObjectShape, other: ObjectShape) {
  const names = new Set([...one.properties.keys(), ...other.properties.keys()]);
  const isSilent = one.additional === undefined && other.additional === undefined;
  return {
    properties: new Map(
      [...names].map((name) => [name, allOf(propertyOf(one, name), propertyOf(other, name))]),
    ),
    required: new Set([...one.required, ...other.required]),
    additional: isSilent ? undefined : allOf(one.additional ?? [], other.additional ?? []),
    names: allOf(one.names, other.names),
  };
}

/** A value that may match gets the shape's tags, and `unsure` unless its parts surely match. */
function valueWithin(one: ValueShape, other: Shape, level: number): ValueShape | undefined {
  const isMatch = matchesAt(other, one.value, level);
  if (isMatch === false) return undefined;
  const isByRules = matchesAt({ ...other, tags: noTags }, one.value, level) === true;
  return { ...one, tags: new Map([...one.tags, ...other.tags, ...(isByRules ? [] : [unsure])]) };
}

const unsure = tagOf(unsureKeyword, null);
