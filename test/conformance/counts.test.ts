import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { counts, rows } from "./counts.ts";
import { notYet, reasons } from "./not-yet.ts";

test("each sentence of the specification is in exactly one of the two lists", () => {
  const ids = [...rows, ...notYet].map(({ section, sentence }) => `${section}: ${sentence}`);

  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  expect(ids).toHaveLength(counts.withRow + counts.withoutRow);
});

test("every group of rows is counted and has its tests", () => {
  const folder = new URL(".", import.meta.url);
  const proved = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap(
      (name) => /^prove\((\w+)\);$/m.exec(readFileSync(new URL(name, folder), "utf8"))?.[1] ?? [],
    );
  const counted = [
    ...readFileSync(new URL("counts.ts", folder), "utf8").matchAll(/^ {2}\.\.\.(\w+),$/gm),
  ].map(([, name]) => name);

  expect(proved.sort()).toEqual(counted.sort());
});

test("the counts show how much of the specification is tested", () => {
  const { withRow, withoutRow, withoutRowByReason } = counts;
  console.log(`conformance: ${withRow} sentences with a row, ${withoutRow} without`);
  for (const [reason, count] of Object.entries(withoutRowByReason)) {
    console.log(
      `conformance: ${String(count).padStart(3)} because ${reasons[reason as keyof typeof reasons]}`,
    ); // safe: its own keys
  }
  expect(Object.values(withoutRowByReason).reduce((sum, count) => sum + count, 0)).toBe(withoutRow);
  expect(Object.values(withoutRowByReason)).not.toContain(0);
});
