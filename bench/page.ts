import { readFileSync, writeFileSync } from "node:fs";
import type { Result } from "./measure.ts";

const head = "| id | ours | peer | ratio | goal |\n|---|---|---|---|---|\n";

/** Puts the figures into the tables of docs/speed.md, and those of the container into that of docs/container.md. */
export function writePages(results: readonly Result[]): void {
  writePage("speed", results);
  writePage(
    "container",
    results.filter(({ id }) => id.startsWith("drain-") || id === "http-memory"),
  );
}

function writePage(name: string, results: readonly Result[]): void {
  const page = new URL(`../docs/${name}.md`, import.meta.url);
  const rows = results.map(
    ({ id, ours, peer, unit, ratio, goal }) => `| \`${id}\` | ${ours} ${unit} | ${peer} ${unit} | ${ratio} | ${goal} |\n`,
  );
  const [before = "", after = ""] = readFileSync(page, "utf8").split(head);
  writeFileSync(page, before + head + rows.join("") + after.replace(/^(?:\|.*\n)+/, ""));
}
