import { readFileSync, writeFileSync } from "node:fs";
import { type Result, shownRatio } from "./measure.ts";

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
    (result) =>
      `| \`${result.id}\` | ${result.ours} ${result.unit} | ${result.peer} ${result.unit} | ${shownRatio(result)} | ${result.goal} |\n`,
  );
  const [before = "", after = ""] = readFileSync(page, "utf8").split(head);
  writeFileSync(page, before + head + rows.join("") + after.replace(/^(?:\|.*\n)+/, ""));
}
