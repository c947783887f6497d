/** Maximum length, in UTF-16 code units. */
const longest = 80;

/** Formats any value on one bounded line. Never throws. */
export function quoted(value: unknown): string {
  return Array.isArray(value)
    ? shortened(`[${value.slice(0, longest).map(quotedItem).join(", ")}]`)
    : quotedItem(value);
}

function quotedItem(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(shortened(value));
    case "object":
      return value === null ? "null" : "an object";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    default:
      return shortened(String(value));
  }
}

function shortened(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}...`;
}
