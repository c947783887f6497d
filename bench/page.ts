import { readFileSync, writeFileSync } from "node:fs";
import type { Row } from "./goals.ts";
import type { Growth } from "./growth/curve.ts";
import { shownRatio } from "./measure.ts";

const head = "| id | ours | peer | ratio | goal | status |\n|---|---|---|---|---|---|\n";

/** Puts the figures into the tables of docs/speed.md, and those of the container into that of docs/container.md. */
export function writePages(rows: readonly Row[]): void {
  writePage("speed", rows);
  writePage(
    "container",
    rows.filter(({ id }) => id.startsWith("drain-") || id === "http-memory"),
  );
}

/** Puts the curves into the table of docs/growth.md. */
export function writeGrowth(curves: readonly Growth[]): void {
  writeTable("growth", growthHead, curves.map(growthCells));
}

const growthHead =
  "| id | figures by size | slope | theory | bound | status |\n|---|---|---|---|---|---|\n";

/** The cells of a curve. */
export function growthCells({ id, unit, figures, slope, theory, bound, status }: Growth): string[] {
  const shown = figures.map(([size, figure]) => `${grouped(size)}: ${grouped(figure)}`);
  return [`\`${id}\``, `${shown.join("; ")} ${unit}`, `${slope}`, theory, `${bound}`, status];
}

function grouped(value: number): string {
  return value.toLocaleString("en-US");
}

function writePage(name: string, rows: readonly Row[]): void {
  writeTable(name, head, rows.map(cellsOf));
}

function writeTable(name: string, head: string, rows: readonly (readonly string[])[]): void {
  const page = new URL(`../docs/${name}.md`, import.meta.url);
  const lines = rows.map((cells) => `| ${cells.join(" | ")} |\n`);
  const [before = "", after = ""] = readFileSync(page, "utf8").split(head);
  writeFileSync(page, before + head + lines.join("") + after.replace(/^(?:\|.*\n)+/, ""));
}

/** The cells of a row. A row that misses its goal has the reason next to its status. */
export function cellsOf(row: Row): string[] {
  const { id, ours, peer, unit, goal, status, missed } = row;
  const shown = missed === undefined ? status : `${status}: ${missed}`;
  return [`\`${id}\``, `${ours} ${unit}`, `${peer} ${unit}`, shownRatio(row), goal, shown];
}
