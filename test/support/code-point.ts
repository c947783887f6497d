import fc from "fast-check";

/** Any code point, including halves of pairs, as a unit of strings: fast-check needs a second to make its own, `binary`. */
export const codePoint = fc
  .integer({ min: 0, max: 0x10ffff })
  .map((code) => String.fromCodePoint(code));
