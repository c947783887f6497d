import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";

/** Returns the files below `root` that match, sorted, with `/` between folders. */
export function filesIn(root, patterns) {
  return globSync(patterns, { cwd: root, exclude: ["**/node_modules/**", "infra/dist/**"] })
    .map((file) => file.split(sep).join("/"))
    .sort();
}

export function textIn(root, file) {
  return readFileSync(join(root, file), "utf8");
}
