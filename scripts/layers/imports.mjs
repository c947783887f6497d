import { globSync, readFileSync } from "node:fs";
import { join, posix, sep } from "node:path";
import { parseAst } from "rolldown/parseAst";

const isTest = (file) => file.endsWith(".test.ts");

/**
 * Reads the imports between the files of a folder, without tests: `{ from, to, names }`, one per pair of files. Types, exports
 * from other modules and `import()` count too. `names` contains, for each file, words that may be a variable's name.
 */
export function importsOf(folder) {
  const files = globSync("**/*.ts", { cwd: folder }).map((file) => file.split(sep).join("/"));
  const kept = files.filter((file) => !isTest(file)).sort();
  const computed = [];
  const variables = new Map();
  const imports = kept.flatMap((from) => {
    const byFile = new Map();
    const { sources, capitals } = read(readFileSync(join(folder, from), "utf8"));
    variables.set(from, capitals);
    for (const { source, names } of sources) {
      if (source === undefined) computed.push(from);
      if (!source?.startsWith(".")) continue;
      const to = posix.join(posix.dirname(from), source);
      byFile.set(to, [...(byFile.get(to) ?? []), ...names]);
    }
    return [...byFile].map(([to, names]) => ({ from, to, names: [...new Set(names)] }));
  });
  return { files: kept, imports, computed, names: variables };
}

/**
 * The modules that a source imports, and the names that it imports from each; `source` is `undefined` if it is computed.
 * `capitals` are the source's names and strings in capitals.
 */
function read(text) {
  const sources = [];
  const capitals = new Set();
  visit(parseAst(text, { lang: "ts" }), (node) => {
    const source = node.source?.value;
    if (typeof source === "string" || node.type === "ImportExpression")
      sources.push({ source, names: namesOf(node) });
    const word = node.type === "Identifier" ? node.name : node.value;
    if (typeof word === "string" && /^[A-Z][A-Z0-9_]+$/.test(word)) capitals.add(word);
  });
  return { sources, capitals };
}

function visit(node, each) {
  each(node);
  for (const child of Object.values(node)) {
    for (const one of Array.isArray(child) ? child : [child]) {
      if (typeof one?.type === "string") visit(one, each);
    }
  }
}

function namesOf({ type, specifiers, qualifier, importKind, exportKind }) {
  if (type === "ImportExpression") return ["import()"];
  if (type === "TSImportType") return [`type ${qualifier?.name ?? "*"}`];
  if (type === "ExportAllDeclaration") return [marked("*", exportKind)];
  if (specifiers.length === 0) return ["nothing"];
  return specifiers.map((specifier) => {
    const { type, imported, local } = specifier;
    const kind = [importKind, exportKind, specifier.importKind, specifier.exportKind].includes(
      "type",
    )
      ? "type"
      : "value";
    if (type === "ImportNamespaceSpecifier") return marked("*", kind);
    if (type === "ImportDefaultSpecifier") return marked("default", kind);
    return marked((imported ?? local).name ?? (imported ?? local).value, kind);
  });
}

function marked(name, kind) {
  return kind === "type" ? `type ${name}` : name;
}
