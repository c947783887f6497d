import { isDeepStrictEqual } from "node:util";

/** Input before and after its schema validated it. */
export interface AcceptedInput {
  readonly raw: unknown;
  readonly accepted: unknown;
}

/**
 * Merges the input that a hook returned into the raw input. Members that the hook changed get the
 * hook's values. All others keep their raw values, so the schema never transforms its own output.
 *
 * @param accepted - copy from before the hook, which may have changed the input in place
 */
export function changedInput({ raw, accepted: given }: AcceptedInput, changed: unknown): unknown {
  if (isDeepStrictEqual(given, changed)) return raw;
  if (Array.isArray(raw) && Array.isArray(given) && Array.isArray(changed)) {
    // Finds the raw value of each item, because hooks may add, remove and sort items.
    return changed.map((item, index) => {
      const from = given.findIndex((one) => isDeepStrictEqual(one, item));
      const at = from === -1 ? index : from;
      const isKnown = raw.length === given.length && at < raw.length;
      return isKnown ? changedInput({ raw: raw[at], accepted: given[at] }, item) : item;
    });
  }
  if (!isPlain(raw) || !isPlain(given) || !isPlain(changed)) return changed;
  const merged: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(changed)) {
    const isSame = Object.hasOwn(given, name) && isDeepStrictEqual(given[name], value);
    if (Object.hasOwn(raw, name))
      merged[name] = changedInput({ raw: raw[name], accepted: given[name] }, value);
    // Skips members that the schema added, such as defaults, because the schema adds them again.
    else if (!isSame) merged[name] = value;
  }
  return merged;
}

/** Maximum depth of a copy, which shares deeper members with the original. */
const maxLevels = 64;

/**
 * Copies arrays and plain objects, so that a hook cannot change the original. Returns any other
 * object, such as a `Date`, unchanged.
 */
export function copied(input: unknown, level = 0): unknown {
  if (level === maxLevels) return input;
  if (Array.isArray(input)) return input.map((item) => copied(item, level + 1));
  if (!isPlain(input)) return input;
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => [name, copied(value, level + 1)]),
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
