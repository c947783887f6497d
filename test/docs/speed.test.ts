import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { judged, type Row, silentMisses, statusOf } from "../../bench/goals.ts";
import { cellsOf } from "../../bench/page.ts";
import { root, tableUnder } from "./markdown.ts";

const { results } = JSON.parse(readFileSync(join(root, "bench/results.json"), "utf8")) as {
  results: Row[];
};

test("the figures of docs/speed.md match bench/results.json", () => {
  expect(results.length).toBeGreaterThan(10);
  expect(tableUnder("docs/speed.md", "Figures")).toEqual(
    results.map((row) => cellsOf(row).map((cell) => cell.replace(/^`([^`]*)`$/, "$1"))),
  );
});

test("the goal, status and reason of each row follow from its figures and bench/goals.ts", () => {
  expect(results).toEqual(results.map(judged));
});

test("each row that misses its goal has a reason, and no other row has one", () => {
  expect(silentMisses(results)).toEqual([]);
});

test("a row that misses its goal needs a reason, and a row that meets it must not have one", () => {
  const row = judged({ id: "config-warm", ours: 50, peer: 100, unit: "ns", ratio: 0.5 });
  const slow = judged({ ...row, ours: 61, ratio: 0.61 });

  expect([row.status, slow.status]).toEqual(["met", "missed"]);
  expect(silentMisses([row, { ...slow, missed: "the machine" }])).toEqual([]);
  expect(silentMisses([{ ...row, missed: "the machine" }, slow])).toEqual([
    'config-warm meets "ratio <= 0.6" with 0.5: delete the reason in bench/goals.ts',
    'config-warm misses "ratio <= 0.6" with 0.61: give its reason in bench/goals.ts, or make it faster',
  ]);
});

test("a status compares the ratio or our figure with the goal", () => {
  const statusWith = (goal: string) => statusOf({ ours: 2, ratio: 0.5 }, goal);

  expect(["ratio <= 0.5", "ours = 2", "ours >= 2", "ours <= 2 ns"].map(statusWith)).toEqual(
    Array(4).fill("met"),
  );
  expect(["ratio <= 0.49", "ours = 1", "ours >= 3", "ours <= 1.9 ns"].map(statusWith)).toEqual(
    Array(4).fill("missed"),
  );
  expect(statusWith("none")).toBe("none");
  expect(() => statusWith("fast")).toThrow('"fast" is not a goal');
});

test("the figures of docs/container.md also appear in docs/speed.md", () => {
  const own = tableUnder("docs/container.md", "What it costs");

  expect(own.map(([id]) => id)).toEqual([
    "drain-lost-balancer",
    "drain-resets",
    "drain-exit",
    "http-memory",
  ]);
  expect(tableUnder("docs/speed.md", "Figures")).toEqual(expect.arrayContaining(own));
});

test("docs/speed.md describes the measurement of each figure", () => {
  const described = tableUnder("docs/speed.md", "What is measured").flatMap(([ids = ""]) =>
    ids.split(/[`, ]+/).filter((id) => id !== ""),
  );

  const sources = globSync("bench/*.ts", { cwd: root }).map((path) =>
    readFileSync(join(root, path), "utf8"),
  );
  const isMeasured = (id: string) =>
    results.some((result) => result.id === id) || sources.some((text) => text.includes(`"${id}"`));

  expect(described).toEqual(expect.arrayContaining(results.map(({ id }) => id)));
  expect(described.filter((id) => !isMeasured(id))).toEqual([]);
});

test("each ratio is ours divided by the peer's", () => {
  for (const { id, ours, peer, ratio } of results) {
    expect([id, Math.abs(ratio - ours / (peer === 0 ? 1 : peer)) < 0.02]).toEqual([id, true]);
  }
});

test("the ratio of a figure is within its spread", () => {
  for (const { id, ratio, spread: [low, high] = [ratio, ratio] } of results) {
    expect([id, low <= ratio + 0.02 && ratio - 0.02 <= high]).toEqual([id, true]);
  }
});
