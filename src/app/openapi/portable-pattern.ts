/**
 * A pattern as JSON Schema asks for it: one in Unicode mode, which validators compile all with, and which refuses escapes that a
 * `RegExp` without flags takes, such as `\-`. `undefined` where it cannot be said there.
 */
export function portablePattern(source: string): string | undefined {
  return [source, rewritten(source)].find(isOfUnicodeMode);
}

/** Without escapes of what needs none, and with those of a `-` behind a class such as `\w`. */
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

/** What an escape means something for, or may: a comma is one of a quantifier's. */
const kept = /[A-Za-z0-9^$\\.*+?()[\]{}|/,]/;

function isOfUnicodeMode(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}
