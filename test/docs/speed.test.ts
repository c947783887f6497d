import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, tableUnder } from "./markdown.ts";

const { results } = JSON.parse(readFileSync(join(root, "bench/results.json"), "utf8")) as {
  results: {
    id: string;
    ours: number;
    peer: number;
    unit: string;
    ratio: number;
    spread?: [number, number];
    floor?: number;
    goal: string;
  }[];
};

test("the figures of docs/speed.md match bench/results.json", () => {
  const measured = results.map(({ id, ours, peer, unit, ratio, spread, floor, goal }) => [
    id,
    `${ours} ${unit}`,
    `${peer} ${unit}`,
    `${ratio}${spread === undefined ? "" : ` (${spread.join(" to ")})`}${floor === undefined ? "" : `, floor ${Number((floor / peer).toFixed(3))}`}`,
    goal,
  ]);

  expect(measured.length).toBeGreaterThan(10);
  expect(tableUnder("docs/speed.md", "Figures")).toEqual(measured);
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

test("the ratio of a figure lies within its spread", () => {
  for (const { id, ratio, spread: [low, high] = [ratio, ratio] } of results) {
    expect([id, low <= ratio + 0.02 && ratio - 0.02 <= high]).toEqual([id, true]);
  }
});
