import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cut, quoted, visible } from "./quoted-text.ts";

const anyText = fc.string({
  unit: fc.oneof(
    fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
    fc.string({ unit: "grapheme" }),
  ),
});
/** What may end a line or act on a terminal: C0, DEL, C1, separators, direction marks, BOM. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const acting = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
const loneSurrogate = /\p{Surrogate}/u;

describe("quoted", () => {
  it("returns JSON of exactly the text, without active characters", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const json = quoted(text);
        expect(JSON.parse(json)).toBe(text);
        expect(json).not.toMatch(acting);
        expect(json).not.toMatch(loneSurrogate);
      }),
    );
  });

  it("escapes line ends of every kind, ANSI escapes, direction marks and lone surrogates, and keeps letters", () => {
    expect(quoted("a\nb\r\u0085\u2028\u2029\u001b[31m\u009b\u202e\ud800z")).toBe(
      '"a\\nb\\r\\u0085\\u2028\\u2029\\u001b[31m\\u009b\\u202e\\ud800z"',
    );
    expect(quoted('Straße 東京 😀 "\\')).toBe('"Straße 東京 😀 \\"\\\\"');
  });
});

describe("visible", () => {
  it("leaves no active or invalid character, and stays on one line", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = visible(text);
        expect(shown).not.toMatch(acting);
        expect(shown).not.toMatch(loneSurrogate);
      }),
    );
  });

  it("keeps letters, quotes and backslashes", () => {
    expect(visible('say "ä"\\\n😀')).toBe('say "ä"\\\\u000a😀');
  });
});

describe("cut", () => {
  it("keeps a text of exactly the length, and says how much of a longer one is missing", () => {
    expect(cut("abc", 3)).toBe("abc");
    expect(cut("abcd", 3)).toBe("abc...[1 characters cut]");
    expect(cut("abcd", 0)).toBe("...[4 characters cut]");
  });

  it("never splits a surrogate pair", () => {
    expect(cut("a😀b", 2)).toBe("a...[3 characters cut]");
    expect(cut("a😀b", 3)).toBe("a😀...[1 characters cut]");
  });
});
