import { posix } from "node:path";

/** Summary of entries, each `{ file, name }`: the number of files, of folder changes, and the way, folded by file. */
export function measure(entries) {
  const steps = [];
  for (const { file, name } of entries) {
    const last = steps.at(-1);
    if (last?.file === file) last.functions.push(name);
    else steps.push({ file, functions: [name] });
  }
  const folders = steps.map(({ file }) => posix.dirname(file));
  return {
    files: new Set(steps.map(({ file }) => file)).size,
    changes: folders.filter((folder, at) => at > 0 && folder !== folders[at - 1]).length,
    functions: entries.length,
    steps,
  };
}
