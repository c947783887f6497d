import fc from "fast-check";

/** Any code point, halves of pairs too, as a unit of texts: fast-check takes a second to make its own of that kind, `binary`. */
export const codePoint = fc
  .integer({ min: 0, max: 0x10ffff })
  .map((code) => String.fromCodePoint(code));
