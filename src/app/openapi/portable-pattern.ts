/**
 * Returns an equivalent pattern for JSON Schema, if possible. Validators compile patterns in
 * Unicode mode, which rejects some escapes, for example `\-`.
 */
export function portablePattern(source: string): string | undefined {
  return [source, rewritten(source)].find(isOfUnicodeMode);
}

/** Removes unnecessary escapes, and escapes a `-` that follows a class such as `\w`. */
function rewritten(source: string): string {
  let isInSet = false;
  return source.replaceAll(/\\[\s\S]-?|[[\]]/g, (token) => {
    if (token === "[" || token === "]") {
      isInSet = token === "[";
      return token;
    }
    const [, escaped = "", dash = ""] = token;
    const isKept = kept.test(escaped) || (isInSet && escaped === "-");
    const isOfClass = isInSet && /[dsw]/i.test(escaped);
    return `${isKept ? "\\" : ""}${escaped}${isOfClass && dash !== "" ? "\\-" : dash}`;
  });
}

/** Characters whose escapes have, or may have, a meaning. A comma is part of a quantifier. */
const kept = /[A-Za-z0-9^$\\.*+?()[\]{}|/,]/;

function isOfUnicodeMode(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}
