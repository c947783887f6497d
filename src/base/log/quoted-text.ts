/**
 * The text as a JSON string in which nothing can act on a terminal or be taken for the end of a line:
 * control characters, ANSI escapes, U+2028, U+2029 and marks that reorder text are escaped, and so are
 * lone surrogates, which makes the result valid UTF-8.
 */
export function quoted(text: string): string {
  return isHarmless(text) ? `"${text}"` : JSON.stringify(text).replace(hidden, escaped);
}

/** Whether a text is a JSON string as it is, but for the quotes around it. */
export function isHarmless(text: string): boolean {
  return harmless.test(text);
}

/** The text with all that `quoted` escapes made visible; `"` and `\` stay as they are. For lines read by people. */
export function visible(text: string): string {
  return text.replace(controls, escaped).replace(hidden, escaped).replace(loneSurrogates, escaped);
}

/** The first `length` UTF-16 units, and how many were cut. Never cuts between the halves of a surrogate pair. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? length - 1 : length;
  return `${text.slice(0, end)}...[${text.length - end} characters cut]`;
}

/** Printable ASCII without `"` and `\`: nearly all strings, and four times as fast to test as `JSON.stringify` is. */
const harmless = /^[ !#-[\]-~]*$/;
/** What `JSON.stringify` leaves as it is though it may end a line or act on a terminal: DEL, C1, separators, direction marks, BOM. */
const hidden = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const controls = /\p{Cc}/gu;
const loneSurrogates = /\p{Surrogate}/gu;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
