// The sources as TypeScript's checker sees them. TypeScript comes with scripts/api, whose version has an API in JavaScript.
import { globSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, sep } from "node:path";

/**
 * @returns `{ ts, checker, files, entries }`: the sources without their tests, and for each entry point of package.json its
 * name and the symbols that it exports, by name.
 */
export function readProgram(root) {
  const ts = createRequire(join(root, "scripts", "api", "package.json"))("typescript");
  const paths = globSync("src/**/*.ts", { cwd: root })
    .map((path) => path.split(sep).join("/"))
    .filter((path) => !path.endsWith(".test.ts"))
    .sort();
  const program = ts.createProgram(
    paths.map((path) => join(root, path)),
    compilerOptions(ts, root),
  );
  const checker = program.getTypeChecker();
  const fileOf = (path) => program.getSourceFile(join(root, path).split(sep).join("/"));
  const files = paths.map((path) => ({ path, file: fileOf(path) }));
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([path, { types }]) => {
      const source = types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts");
      return { name: `keelson${path.slice(1)}`, names: exportsOf(ts, checker, fileOf(source)) };
    });
  return { ts, checker, files, entries };
}

function compilerOptions(ts, root) {
  return {
    target: ts.ScriptTarget.ES2024,
    lib: ["lib.es2024.d.ts"],
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowImportingTsExtensions: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(root, "node_modules", "@types")],
  };
}

function exportsOf(ts, checker, file) {
  const module = checker.getSymbolAtLocation(file);
  return new Map(
    checker.getExportsOfModule(module).map((symbol) => {
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      return [symbol.name, isAlias ? checker.getAliasedSymbol(symbol) : symbol];
    }),
  );
}
