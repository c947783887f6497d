// `npm run api`: writes the reports of the public types, one file for each entry point, to test/api, and docs/api.md. With
// --check, which `npm run check` passes, it compares instead, and fails with the differences.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { installPackage } from "../install.mjs";
import { namesPage } from "./names.mjs";
import { entryPoints, reportsOf } from "./reports.mjs";

const [option] = process.argv.slice(2);
const root = join(import.meta.dirname, "../..");
const folder = join(root, "test", "api");
const page = join(root, "docs", "api.md");

try {
  if (process.argv.length > 3 || ![undefined, "--check"].includes(option)) {
    throw new Error("usage: npm run api [-- --check]");
  }
  installPackage("scripts/api", (line) => console.log(`api: ${line}`));
  const { extract } = await import("./extract.mjs");
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = entryPoints(exports);
  const reports = reportsOf(extract(root, entries), entries);
  const names = namesPage(root, entries);
  if (option === "--check") {
    await compare(reports);
    if (readFileSync(page, "utf8").replaceAll("\r\n", "\n") !== names)
      throw new Error("docs/api.md does not match the sources; run npm run api");
  } else {
    write(reports);
    mkdirSync(dirname(page), { recursive: true });
    writeFileSync(page, names);
  }
} catch (error) {
  console.error(`api: ${error.message}`);
  process.exitCode = 1;
}

function write(reports) {
  mkdirSync(folder, { recursive: true });
  for (const name of writtenReports().filter((name) => !reports.has(name)))
    rmSync(join(folder, name));
  for (const [name, text] of reports) writeFileSync(join(folder, name), text);
  console.log(`api: wrote ${reports.size} reports to test/api`);
}

async function compare(reports) {
  const { createTwoFilesPatch } = await import("diff");
  const names = [...new Set([...writtenReports(), ...reports.keys()])].sort();
  const changed = names.flatMap((name) => {
    const [before, after] = [
      writtenReports().includes(name) ? readFileSync(join(folder, name), "utf8") : "",
      reports.get(name) ?? "",
    ];
    const path = `test/api/${name}`;
    return before.replaceAll("\r\n", "\n") === after
      ? []
      : [createTwoFilesPatch(path, path, before, after, "accepted", "now", { context: 3 })];
  });
  if (changed.length === 0) return;
  throw new Error(
    `the public types have changed:\n\n${changed.join("\n")}\nIf the change is intended, run npm run api, commit test/api, and describe it in CHANGELOG.md. Otherwise undo it.`,
  );
}

function writtenReports() {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(".api.md"));
  } catch {
    return []; // no reports exist yet
  }
}
