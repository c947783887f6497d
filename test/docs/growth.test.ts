import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Growth } from "../../bench/growth/curve.ts";
import { growthCells } from "../../bench/page.ts";
import { root, tableUnder } from "./markdown.ts";

// Safe: `npm run bench` writes it.
const { growth } = JSON.parse(readFileSync(join(root, "bench/results.json"), "utf8")) as {
  growth: Growth[];
};

test("the figures of docs/growth.md match bench/results.json", () => {
  expect(growth.length).toBeGreaterThan(20);
  expect(tableUnder("docs/growth.md", "Figures")).toEqual(
    growth.map((curve) => growthCells(curve).map((cell) => cell.replaceAll("`", ""))),
  );
});

test("docs/growth.md describes the measurement of each curve", () => {
  const described = tableUnder("docs/growth.md", "What is measured").flatMap(([ids = ""]) =>
    ids.split(/[`, ]+/).filter((id) => id !== ""),
  );

  expect(described).toEqual(growth.map(({ id }) => id));
});

test("no curve is steeper than its theory, with room for noise", () => {
  expect(growth.filter(({ slope, bound }) => slope > bound).map(({ id }) => id)).toEqual([]);
});
