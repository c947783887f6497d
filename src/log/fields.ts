import { types } from "node:util";
import { isError } from "./json-text.ts";

/** Where fields are read from, and the names they have there. */
export interface Fields {
  readonly source: object;
  readonly names: readonly string[];
}

/** No fields at all. */
export const noFields: Fields = Object.freeze({ source: Object.freeze({}), names: Object.freeze([]) });

/**
 * Finds the fields of what was given as data or context. Plain JavaScript gives anything: an error
 * becomes the field `error`, whatever else is not an object of fields the field `otherwise`.
 */
export function fieldsOf(given: unknown, otherwise: string): Fields {
  if (given === undefined || given === null) return noFields;
  if (typeof given !== "object") return oneField(otherwise, given);
  try {
    if (isObjectOfFields(given)) return { source: given, names: Object.keys(given) };
    return oneField(isError(given) ? "error" : otherwise, given);
  } catch {
    // A Proxy whose traps throw.
    return oneField(otherwise, given);
  }
}

function oneField(name: string, value: unknown): Fields {
  return { source: { [name]: value }, names: [name] };
}

function isObjectOfFields(given: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) return true;
  const hasTextOfItsOwn = "toJSON" in given || Symbol.iterator in given || ArrayBuffer.isView(given) || isError(given);
  return !(hasTextOfItsOwn || types.isDate(given) || types.isBoxedPrimitive(given));
}
