/**
 * Returns a member of a result as Lambda's JSON serialization would: the result of its `toJSON`,
 * such as a date string, if it has one, and `undefined` for functions and symbols. Bytes stay
 * bytes.
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
