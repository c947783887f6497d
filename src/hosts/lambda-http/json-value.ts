/**
 * A member of a result as plain Lambda has it, which writes the result as JSON: what has a `toJSON` is what that gives, such
 * as the text of a date; functions and symbols are absent. Bytes stay bytes.
 */
export function jsonValue(value: unknown): unknown {
  const given = value instanceof Uint8Array || !hasToJson(value) ? value : value.toJSON();
  return typeof given === "function" || typeof given === "symbol" ? undefined : given;
}

function hasToJson(value: unknown): value is { toJSON(): unknown } {
  return (
    typeof value === "object" &&
    value !== null &&
    "toJSON" in value &&
    typeof value.toJSON === "function"
  );
}
