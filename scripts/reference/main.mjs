// `npm run reference`: writes docs/options.md, and the generated tables of other pages, which are between
// `<!-- reference: name -->` and `<!-- /reference -->`. With --check, which `npm run check` passes, it compares instead, and
// fails with the pages that are out of date. Both fail for an option or a member of `ctx` without a comment, and if the table of
// environment variables lacks one or has one that is not read. All such problems are printed together.
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, sep } from "node:path";
import { installPackage } from "../install.mjs";
import { contextTable } from "./context-table.mjs";
import { errorCodes } from "./error-codes.mjs";
import { memberReader } from "./members.mjs";
import { optionTypes } from "./option-types.mjs";
import { optionsPage } from "./options-page.mjs";
import { codeCell, memberTable, tableOf } from "./tables.mjs";
import { readVariables } from "./variables.mjs";

const [option] = process.argv.slice(2);
const root = join(import.meta.dirname, "../..");
const page = "docs/options.md";
/** The page and the heading of the hand-written table of environment variables. */
const variablesAt = ["docs/hosts.md", "## Environment variables"];
const marked = /(<!-- reference: ([\w ]+) -->\n)[\s\S]*?(<!-- \/reference -->)/g;

try {
  if (process.argv.length > 3 || ![undefined, "--check"].includes(option))
    throw new Error("usage: npm run reference [-- --check]");
  installPackage("scripts/api", (line) => console.log(`reference: ${line}`));
  const { readProgram } = await import("./program.mjs");
  const program = readProgram(root);
  const { types, unnamed } = optionTypes(program);
  const reader = memberReader(program);
  const rows = new Map(types.map((type) => [type.name, reader.membersOf(type.symbol)]));
  const errors = errorCodes(program);
  const problems = [
    ...listed("options of another name than scripts/reference knows", unnamed),
    ...listed("options without a comment", reader.missing),
    ...errors.unnamed,
    ...variableProblems(readVariables(program)),
  ];
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const pages = pagesOf(program, { types, rows, nested: reader.nested, codes: errors.codes });
  const changed = [...pages].filter(([path, text]) => textOf(path) !== text);
  if (option !== "--check") {
    for (const [path, text] of changed) writeFileSync(join(root, path), text);
    console.log(`reference: wrote ${changed.length} of ${pages.size} pages`);
  } else if (changed.length > 0) {
    const paths = changed.map(([path]) => path).join(", ");
    throw new Error(`${paths}: out of date; run npm run reference`);
  }
} catch (error) {
  console.error(`reference: ${error.message}`);
  process.exitCode = 1;
}

/** A heading and the names below it, each once; nothing without names. */
function listed(heading, names) {
  return names.length === 0 ? [] : [`${heading}:`, ...new Set(names)];
}

/** The intended text of every page with generated parts, by its path. */
function pagesOf(program, { types, rows, nested, codes }) {
  const placed = new Set();
  const tables = new Map([
    ["ctx", () => contextTable(program)],
    ["error codes", () => codeTable(codes)],
    ...types.map(({ name }) => [`options ${name}`, () => place(name)]),
  ]);
  const pages = new Map(
    globSync("docs/**/*.md", { cwd: root })
      .map((path) => path.split(sep).join("/"))
      .filter((path) => path !== page && textOf(path).match(marked) !== null)
      .map((path) => [path, filled(path, tables)]),
  );
  const isElsewhere = ({ name }) => placed.has(name) || nested.has(name);
  const others = types.filter((type) => !isElsewhere(type));
  return pages.set(
    page,
    optionsPage(program, others, ({ name }) => rows.get(name)),
  );

  function place(name) {
    const { symbol } = types.find((type) => type.name === name);
    placed.add(name);
    for (const base of basesOf(program, symbol)) placed.add(base);
    return memberTable(rows.get(name), { heads: ["Option", "Type", "Default", ""] });
  }
}

/** The names of the types that a type extends: its table has their members. */
function basesOf({ checker }, symbol) {
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  return type.isClassOrInterface()
    ? checker.getBaseTypes(type).map((base) => base.symbol.name)
    : [];
}

function filled(path, tables) {
  return textOf(path).replaceAll(marked, (_, start, name, end) => {
    const table = tables.get(name);
    if (table === undefined)
      throw new Error(`${path}: there is no generated table ${JSON.stringify(name)}`);
    return `${start}\n${table()}\n\n${end}`;
  });
}

function codeTable(codes) {
  return tableOf(
    ["Code", "Status"],
    codes.map(({ code, statuses }) => [`[${codeCell(code)}](#${code})`, statuses.join(" or ")]),
  );
}

/** The variables without a row, and the rows without a variable. */
function variableProblems({ names, unnamed }) {
  const [path, heading] = variablesAt;
  const [, section = ""] = textOf(path).split(`\n${heading}\n`);
  const [table] = section.split(/\n## /);
  const rows = new Set(
    [...table.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell]) =>
      [...cell.matchAll(/`([A-Z_][A-Z0-9_]*(?:<NAME>)?)`/g)].map(([, name]) => name),
    ),
  );
  return [
    ...unnamed.map((place) => `${place} reads a variable whose name its type does not have`),
    ...[...names]
      .filter(([name]) => !rows.has(name))
      .map(([name, file]) => `${path} has no row of ${name}, which ${file} reads`),
    ...[...rows]
      .filter((name) => !names.has(name))
      .map((name) => `${path} has a row of ${name}, which src/ does not read`),
  ];
}

function textOf(path) {
  try {
    return readFileSync(join(root, path), "utf8").replaceAll("\r\n", "\n");
  } catch {
    return ""; // the page does not exist yet
  }
}
