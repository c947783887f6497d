import { expect, test } from "vitest";
import { printRows } from "./print-rows.ts";

async function printed(rows: readonly Record<string, unknown>[], json = false) {
  const [out, err]: [string[], string[]] = [[], []];
  const print = (line: string, style?: string) => void out.push(style ? `${style}: ${line}` : line);
  const complain = (line: string) => void err.push(line);
  const count = await printRows(rows, { json }, { print, complain }, "no key");
  return { count, out, err };
}

test("people get a table, with a hyphen where nothing is", async () => {
  const rows = [
    { id: "k1", roles: ["admin", "clerk"], until: undefined },
    { id: "key-2", roles: [], of: { n: 1 }, note: "a\nb" },
  ];
  expect(await printed(rows)).toEqual({
    count: 2,
    out: [
      "bold: id     roles         until  of       note",
      "k1     admin, clerk  -      -        -",
      'key-2  -             -      {"n":1}  a b',
    ],
    err: [],
  });
});

test("programs get one JSON line per row", async () => {
  expect(await printed([{ id: "k1", until: undefined }, { id: "k2" }], true)).toEqual({
    count: 2,
    out: ['{"id":"k1"}', '{"id":"k2"}'],
    err: [],
  });
});

test.each([false, true])("an empty list says so on standard error (json: %s)", async (json) => {
  expect(await printed([], json)).toEqual({ count: 0, out: [], err: ["keelson: no key"] });
});

test("a long list is printed as it comes, in the columns of its first hundred rows", async () => {
  const rows = Array.from({ length: 102 }, (_, n) => ({
    n,
    text: n === 101 ? "x".repeat(9) : "y",
  }));
  const { out } = await printed(rows);
  expect([out.length, out[0], out[100], out[102]]).toEqual([
    103,
    "bold: n   text",
    "99  y",
    "101  xxxxxxxxx",
  ]);
});

test("a cell of any length is printed whole, and widens its column up to 60 characters", async () => {
  const { out } = await printed([
    { id: "x".repeat(100), n: 1 },
    { id: "y", n: 2 },
  ]);
  expect(out.slice(1)).toEqual([`${"x".repeat(100)}  1`, `y${" ".repeat(61)}2`]);
});
