import { readFileSync, writeFileSync } from "node:fs";
import type { Result } from "./measure.ts";

const page = new URL("../docs/speed.md", import.meta.url);

/** Puts the figures into the table of docs/speed.md. */
export function writePage(results: readonly Result[]): void {
  const rows = results.map(
    ({ id, ours, peer, unit, ratio, goal }) => `| \`${id}\` | ${ours} ${unit} | ${peer} ${unit} | ${ratio} | ${goal} |\n`,
  );
  const head = "| id | ours | peer | ratio | goal |\n|---|---|---|---|---|\n";
  const [before = "", after = ""] = readFileSync(page, "utf8").split(head);
  writeFileSync(page, before + head + rows.join("") + after.replace(/^(?:\|.*\n)+/, ""));
}
