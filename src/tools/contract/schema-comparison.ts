import { canonical } from "../../app/openapi/canonical.ts";
import { accepts, isApart, shapesOf, TooComplexError } from "./schema-shapes.ts";
import {
  type ArrayShape,
  isRefusal,
  itemOf,
  type ObjectShape,
  type RangedShape,
  type Schema,
  type SchemaNode,
  type Shape,
  textOf,
  typeOf,
} from "./shape.ts";
import {
  type Difference,
  difference,
  isRefusing,
  rangeDifferences,
  shown,
  tagDifferences,
  valueDifferences,
} from "./shape-differences.ts";

/**
 * Finds where `to` may reject a value that `from` accepts, and properties that only one schema
 * names. `from` guarantees nothing about properties that it neither names nor restricts. With
 * `isOpen`, the reader of `to` ignores unknown properties, so it may reject them.
 */
export function differences(
  from: SchemaNode,
  to: SchemaNode,
  { isOpen = false }: { readonly isOpen?: boolean } = {},
): readonly Difference[] {
  const walk = new Walk(isOpen);
  const found = walk.schemas([{ node: from, root: from }], [{ node: to, root: to }], "");
  return [...new Map(found.map((difference) => [canonical(difference), difference])).values()];
}

const mostSteps = 10_000;

class Walk {
  readonly #isOpen: boolean;
  /** Pairs being compared. A recursive schema repeats a pair without new differences. */
  readonly #above = new Set<string>();
  #steps = 0;

  constructor(isOpen: boolean) {
    this.#isOpen = isOpen;
  }

  schemas(from: Schema, to: Schema, path: string): Difference[] {
    const [fromTexts, toTexts] = [from.map(textOf), to.map(textOf)];
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

  #shapes(from: readonly Shape[], to: readonly Shape[], path: string) {
    const types = new Set(to.map(typeOf));
    const hasCommon = from.some((shape) => types.has(typeOf(shape)));
    return from.flatMap((shape) => {
      const type = typeOf(shape);
      if (!types.has(type)) {
        const [all, wanted] = [[...new Set(from.map(typeOf))], [...types]];
        const kind = hasCommon ? "type" : "changed-type";
        return [difference(path, kind, type, all.join(" or "), wanted.join(" or "))];
      }
      const same = to.filter((other) => typeOf(other) === type);
      if (shape.kind === "value") return valueDifferences(shape, same, path);
      const isOneOfMany =
        same.length > 1 || from.filter((other) => typeOf(other) === type).length > 1;
      return this.#nearest(shape, same, path, isOneOfMany);
    });
  }

  #nearest(
    shape: RangedShape,
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
      // A different alternative has not lost the property that it lacks.
      const found = apart.length > 0 && isApart(shape, other) ? apart : all;
      if (nearest === undefined || weightOf(found) < weightOf(nearest)) nearest = found;
    }
    const values = alternatives.map(shown).join(", ");
    return nearest ?? [difference(path, "values", type, `any ${type}`, values)];
  }

  #shape(from: RangedShape, to: RangedShape, path: string) {
    return [
      ...rangeDifferences(from, to, path),
      ...tagDifferences(from, to, path),
      // Safe casts: the shapes have the same type.
      ...(from.kind === "array" ? this.#items(from, to as ArrayShape, path) : []),
      ...(from.kind === "object" ? this.#members(from, to as ObjectShape, path) : []),
    ];
  }

  #items(from: ArrayShape, to: ArrayShape, path: string) {
    const length = Math.min(Math.max(from.prefix.length, to.prefix.length), from.most.at);
    const item = (index: number, at: string | number = index) =>
      this.schemas(itemOf(from, index), itemOf(to, index), `${path}[${at}]`);
    const found = Array.from({ length }, (_, index) => item(index)).flat();
    return from.most.at > length ? [...found, ...item(length, "")] : found;
  }

  #members(from: ObjectShape, to: ObjectShape, path: string) {
    const at = (name: string) => (path === "" ? name : `${path}.${name}`);
    const names = [...new Set([...from.properties.keys(), ...to.properties.keys()])];
    const missing = [...to.required].filter((name) => !from.required.has(name));
    const isNamed = (name: string) => (from.properties.has(name) ? "named" : "unnamed");
    return [
      ...missing.map((name) => difference(at(name), "required", isNamed(name), "", "required")),
      ...names.flatMap((name) => this.#property(from, to, name, at(name))),
      ...this.#unnamed(from, to, at("*")),
      ...this.#names(from, to, path),
    ];
  }

  #property(from: ObjectShape, to: ObjectShape, name: string, path: string) {
    const schemaIn = (shape: ObjectShape) => shape.properties.get(name) ?? shape.additional;
    const [was, is] = [schemaIn(from), schemaIn(to)];
    if (was === undefined || (isRefusal(was) && !from.properties.has(name)))
      return to.required.has(name) ? [] : [difference(path, "only-to", "", "", "there")];
    if (is !== undefined && (to.properties.has(name) || !isRefusal(is)))
      return this.schemas(was, is, path);
    if (shapesOf(was).length === 0) return [];
    const isSkipped = is === undefined || this.#isOpen;
    return [difference(path, isSkipped ? "only-from" : "named", "", "there", "")];
  }

  #unnamed(from: ObjectShape, to: ObjectShape, path: string) {
    if (to.additional === undefined || isRefusal(from.additional)) return [];
    if (!isRefusal(to.additional)) return this.schemas(from.additional ?? [], to.additional, path);
    return this.#isOpen ? [] : [difference(path, "unnamed", "", "allowed", "refused")];
  }

  #names(from: ObjectShape, to: ObjectShape, path: string) {
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

/** A wrong value, or less strongly a changed type, suggests another alternative. */
function weightOf(found: readonly Difference[]) {
  const weights = found.map((one) => (isRefusing(one) ? (apartWeights[one.kind] ?? 1e3) : 1));
  return weights.reduce((sum, weight) => sum + weight, 0);
}

const apartWeights: Readonly<Record<string, number>> = { value: 1e9, "changed-type": 1e6 };
