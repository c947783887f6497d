import { type FieldError, ValidationError } from "./errors.ts";

/** Most unknown fields in an error, and most characters of a name. */
const [maxFields, longestName] = [20, 200];

/** Returns the first 20 fields that are not known. */
export function unknownFields(given: object, known: readonly string[], hint: string): FieldError[] {
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .slice(0, maxFields)
    .map((name) => ({ field: name.slice(0, longestName), error: `is not known; ${hint}` }));
}

/** @throws ValidationError with the wrong fields, if there are any. */
export function refuseWrong(found: readonly (FieldError | undefined)[]): void {
  const fields = found.filter((field) => field !== undefined);
  if (fields.length > 0) throw new ValidationError(fields);
}
