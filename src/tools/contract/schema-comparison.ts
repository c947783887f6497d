import { canonical } from "../../app/openapi/canonical.ts";
import { type Difference, difference, isRefusing } from "./difference.ts";
import { accepts, isApart, shapesOf, TooComplexError } from "./schema-shapes.ts";
import {
  type ArrayShape,
  isRefusal,
  itemOf,
  type ObjectShape,
  propertyOf,
  type Schema,
  type SchemaNode,
  type Shape,
  textOf,
  typeOf,
  type ValueShape,
} from "./shape.ts";
import { rangeDifferences, shown, tagDifferences, valueDifferences } from "./shape-differences.ts";

export interface Comparison {
  /**
   * Whether unnamed properties pass although `to` rejects them, because its reader ignores unknown
   * properties.
   */
  readonly isOpen?: boolean;
}

/**
 * Finds where `to` may reject a value that `from` accepts, and properties that only one names. Only
 * properties that `from` names or restricts count: it promises nothing about others.
 */
export function differences(
  from: SchemaNode,
  to: SchemaNode,
  comparison: Comparison = {},
): readonly Difference[] {
  const walk = new Walk(comparison);
  const found = walk.schemas([{ node: from, root: from }], [{ node: to, root: to }], "");
  return [...new Map(found.map((difference) => [canonical(difference), difference])).values()];
}

const mostSteps = 10_000;

class Walk {
  readonly #comparison: Comparison;
  /** Enclosing pairs. A recursive schema repeats them without new differences. */
  readonly #above = new Set<string>();
  #steps = 0;

  constructor(comparison: Comparison) {
    this.#comparison = comparison;
  }

  schemas(from: Schema, to: Schema, path: string): readonly Difference[] {
    const [fromTexts, toTexts] = [from, to].map((schema) => schema.map(textOf)) as [
      string[],
      string[],
    ]; // safe: there are two
    if (toTexts.every((text) => fromTexts.includes(text) || text === "true")) return [];
    const pair = canonical([fromTexts, toTexts]);
    if (this.#above.has(pair)) return [];
    this.#steps += 1;
    this.#above.add(pair);
    try {
      if (this.#steps > mostSteps) throw new TooComplexError();
      return this.#shapes(shapesOf(from), shapesOf(to), path);
    } catch (error) {
      if (!(error instanceof TooComplexError)) throw error;
      return [difference(path, "cannot-tell", "", "", "too complex")];
    } finally {
      this.#above.delete(pair);
    }
  }

  #shapes(from: readonly Shape[], to: readonly Shape[], path: string): readonly Difference[] {
    const types = new Set(to.map(typeOf));
    const hasCommon = from.some((shape) => types.has(typeOf(shape)));
    return from.flatMap((shape) => {
      const type = typeOf(shape);
      const [all, wanted] = [from, to].map((shapes) =>
        [...new Set(shapes.map(typeOf))].join(" or "),
      ) as [string, string]; // safe: there are two
      if (!types.has(type))
        return [difference(path, hasCommon ? "type" : "changed-type", type, all, wanted)];
      const same = to.filter((other) => typeOf(other) === type);
      if (shape.kind === "value") return valueDifferences(shape, same, path);
      const isOneOfMany =
        same.length > 1 || from.filter((other) => typeOf(other) === type).length > 1;
      return this.#nearest(shape, same, path, isOneOfMany);
    });
  }

  /** Returns the differences from the closest alternative. */
  #nearest(
    shape: Exclude<Shape, ValueShape>,
    alternatives: readonly Shape[],
    path: string,
    isOneOfMany: boolean,
  ): readonly Difference[] {
    const type = shape.kind;
    let nearest: readonly Difference[] | undefined;
    for (const other of alternatives) {
      if (other.kind === "value") continue;
      const all = this.#shape(shape, other, path);
      const apart = isOneOfMany ? all.filter(({ kind }) => kind in apartWeights) : [];
      // `other` is a different alternative, so only the differences between the alternatives count.
      // A property that `other` lacks was not lost.
      const found = apart.length > 0 && isApart(shape, other) ? apart : all;
      if (nearest === undefined || weightOf(found) < weightOf(nearest)) nearest = found;
    }
    return (
      nearest ?? [
        difference(path, "values", type, `any ${type}`, alternatives.map(shown).join(", ")),
      ]
    );
  }

  #shape(
    from: Exclude<Shape, ValueShape>,
    to: Exclude<Shape, ValueShape>,
    path: string,
  ): readonly Difference[] {
    return [
      ...rangeDifferences(from, to, path),
      ...tagDifferences(from, to, path),
      // Safe, in both lines: both shapes have the same type.
      ...(from.kind === "array" ? this.#items(from, to as ArrayShape, path) : []),
      ...(from.kind === "object" ? this.#members(from, to as ObjectShape, path) : []),
    ];
  }

  #items(from: ArrayShape, to: ArrayShape, path: string): readonly Difference[] {
    const length = Math.min(Math.max(from.prefix.length, to.prefix.length), from.most.at);
    const found = Array.from({ length }, (_, index) =>
      this.#item(from, to, index, `${path}[${index}]`),
    ).flat();
    return from.most.at > length ? [...found, ...this.#item(from, to, length, `${path}[]`)] : found;
  }

  #item(from: ArrayShape, to: ArrayShape, index: number, path: string): readonly Difference[] {
    return this.schemas(itemOf(from, index), itemOf(to, index), path);
  }

  #members(from: ObjectShape, to: ObjectShape, path: string): readonly Difference[] {
    const at = (name: string) => (path === "" ? name : `${path}.${name}`);
    const names = [...new Set([...from.properties.keys(), ...to.properties.keys()])];
    const missing = [...to.required].filter((name) => !from.required.has(name));
    return [
      ...missing.map((name) =>
        difference(
          at(name),
          "required",
          from.properties.has(name) ? "named" : "unnamed",
          "",
          "required",
        ),
      ),
      ...names.flatMap((name) => this.#property(from, to, name, at(name))),
      ...this.#unnamed(from, to, at("*")),
      ...this.#names(from, to, path),
    ];
  }

  #property(from: ObjectShape, to: ObjectShape, name: string, path: string): readonly Difference[] {
    if (
      !from.properties.has(name) &&
      (from.additional === undefined || isRefusal(from.additional))
    ) {
      return to.required.has(name) ? [] : [difference(path, "only-to", "", "", "there")];
    }
    if (to.properties.has(name))
      return this.schemas(propertyOf(from, name), propertyOf(to, name), path);
    if (to.additional !== undefined && !isRefusal(to.additional))
      return this.schemas(propertyOf(from, name), to.additional, path);
    if (!this.#mayBe(propertyOf(from, name))) return [];
    const isSkipped = to.additional === undefined || this.#comparison.isOpen === true;
    return [difference(path, isSkipped ? "only-from" : "named", "", "there", "")];
  }

  #mayBe(schema: Schema): boolean {
    return shapesOf(schema).length > 0;
  }

  #unnamed(from: ObjectShape, to: ObjectShape, path: string): readonly Difference[] {
    const { isOpen = false } = this.#comparison;
    if (to.additional === undefined || isRefusal(from.additional)) return [];
    if (!isRefusal(to.additional)) return this.schemas(from.additional ?? [], to.additional, path);
    return isOpen ? [] : [difference(path, "unnamed", "", "allowed", "refused")];
  }

  #names(from: ObjectShape, to: ObjectShape, path: string): readonly Difference[] {
    const named = [...from.properties.keys()].filter((name) => accepts(to.names, name) !== true);
    const unnamed = isRefusal(from.additional)
      ? []
      : this.schemas(allNames(from), allNames(to), path);
    return named.length + unnamed.length > 0
      ? [difference(path, "names", "", "", named.join(", "))]
      : [];
  }
}

const text: SchemaNode = { type: "string" };

/** Property names are strings, even without a `type` in their schema. */
function allNames({ names }: ObjectShape): Schema {
  return [{ node: text, root: text }, ...names];
}

/** A value that does not fit, and less strongly a changed type, suggests another alternative. */
function weightOf(found: readonly Difference[]): number {
  return found.reduce(
    (sum, one) => sum + (isRefusing(one) ? (apartWeights[one.kind] ?? 1e3) : 1),
    0,
  );
}

const apartWeights: Readonly<Record<string, number>> = { value: 1e9, "changed-type": 1e6 };
