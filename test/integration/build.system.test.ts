import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
/** A package as small as can be, with the script and the compiler of this one. */
let root: string;
const path = (name: string) => join(root, name);

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "keelson-build-"));
  for (const name of ["src/inner", "scripts"]) mkdirSync(path(name), { recursive: true });
  for (const name of ["build.mjs", "dist-format.json"])
    cpSync(join(repository, "scripts", name), path(`scripts/${name}`));
  symlinkSync(join(repository, "node_modules"), path("node_modules"), "junction");
  writeFileSync(path("package.json"), JSON.stringify({ type: "module" }));
  const compilerOptions = {
    target: "es2024",
    module: "nodenext",
    rootDir: "src",
    outDir: "dist",
    types: [],
  };
  writeFileSync(path("tsconfig.build.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  writeFileSync(path("src/index.ts"), 'export const inner = () => import("./inner/lazy.js");\n');
  writeFileSync(path("src/inner/lazy.ts"), "export const lazy = 1;\n");
});
let reader: ChildProcess | undefined;
afterEach(() => {
  reader?.kill();
  rmSync(root, { recursive: true, force: true });
});

function build(): ChildProcess {
  return spawn(process.execPath, [path("scripts/build.mjs")], { stdio: "ignore" });
}

async function codeOf(child: ChildProcess): Promise<unknown> {
  const [code] = await once(child, "exit");
  return code;
}

test("concurrent builds all succeed, and a process that keeps importing from dist/ always finds every file", async () => {
  expect(await codeOf(build())).toBe(0);
  // Imports over and over, each time as a file that Node has not seen, until it is told to stop.
  const reading = `
    let count = 0;
    process.on("message", () => { process.send(count); process.disconnect(); count = -1; });
    process.send("reading");
    while (count >= 0) {
      const { inner } = await import("./dist/index.js?" + count);
      await inner();
      await import("./dist/inner/lazy.js?" + count);
      if (count >= 0) count += 1;
      await new Promise(setImmediate);
    }`;
  writeFileSync(path("reader.mjs"), reading);
  reader = spawn(process.execPath, [path("reader.mjs")], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const readerEnds = codeOf(reader);
  await once(reader, "message");
  for (const round of [1, 2]) {
    // Another content each round, so that there is something to replace.
    writeFileSync(path("src/inner/lazy.ts"), `export const lazy = ${round};\n`);
    expect(await Promise.all([build(), build(), build()].map(codeOf))).toEqual([0, 0, 0]);
  }
  reader.send("stop");

  expect(await readerEnds).toBe(0);
  expect(readFileSync(path("dist/inner/lazy.js"), "utf8")).toContain("lazy = 2");
  expect(readdirSync(root).filter((name) => name.startsWith(".dist-"))).toEqual([]);
});

test("a build keeps unchanged files, and removes those whose source is gone", async () => {
  writeFileSync(path("src/inner/gone.ts"), "export const one = 1;\n");
  mkdirSync(path("src/empty"));
  writeFileSync(path("src/empty/gone.ts"), "export const one = 1;\n");
  expect(await codeOf(build())).toBe(0);
  const { ino } = statSync(path("dist/index.js"));
  rmSync(path("src/inner/gone.ts"));
  rmSync(path("src/empty"), { recursive: true });
  writeFileSync(path("src/inner/new.ts"), "export const one = 1;\n");
  expect(await codeOf(build())).toBe(0);

  expect(readdirSync(path("dist")).sort()).toEqual(["index.js", "inner"]);
  expect(readdirSync(path("dist/inner")).sort()).toEqual(["lazy.js", "new.js"]);
  expect(statSync(path("dist/index.js")).ino).toBe(ino);
});

test("a failed build leaves dist/ unchanged", async () => {
  expect(await codeOf(build())).toBe(0);
  writeFileSync(path("src/index.ts"), "export const wrong: string = 1;\n");
  expect(await codeOf(build())).not.toBe(0);

  expect(readFileSync(path("dist/index.js"), "utf8")).toContain("inner");
  expect(existsSync(path("dist/inner/lazy.js"))).toBe(true);
  expect(readdirSync(root).filter((name) => name.startsWith(".dist-"))).toEqual([]);
});

test("the build omits declarations that no entry point reaches", async () => {
  writeFileSync(path("src/types.ts"), "export type Reached = string;\n");
  writeFileSync(path("src/own.ts"), "export const own = 1;\n");
  writeFileSync(
    path("src/public.ts"),
    'import { own } from "./own.js";\nexport type { Reached } from "./types.ts";\nexport const sum: number = own;\n',
  );
  const compilerOptions = {
    target: "es2024",
    module: "nodenext",
    rootDir: "src",
    outDir: "dist",
    types: [],
    declaration: true,
  };
  const extensions = { allowImportingTsExtensions: true, rewriteRelativeImportExtensions: true };
  writeFileSync(
    path("tsconfig.build.json"),
    JSON.stringify({ compilerOptions: { ...compilerOptions, ...extensions }, include: ["src"] }),
  );
  const exports = {
    ".": { types: "./dist/public.d.ts", default: "./dist/public.js" },
    "./package.json": "./package.json",
  };
  writeFileSync(path("package.json"), JSON.stringify({ type: "module", exports }));

  expect(await codeOf(build())).toBe(0);
  expect(readdirSync(path("dist")).filter((name) => name.endsWith(".d.ts"))).toEqual([
    "public.d.ts",
    "types.d.ts",
  ]);
  expect(existsSync(path("dist/own.js"))).toBe(true);
});

test("a types-only module gets no code unless other code imports it", async () => {
  writeFileSync(path("src/types.ts"), "export interface One { readonly one: 1 }\n");
  writeFileSync(path("src/inner/named.ts"), "export interface Two { readonly two: 2 }\n");
  writeFileSync(path("src/entry.ts"), "export interface Three { readonly three: 3 }\n");
  const index =
    'import type { One } from "./types.js";\nexport * from "./inner/named.js";\nexport const one: One = { one: 1 };\n';
  writeFileSync(path("src/index.ts"), index);
  writeFileSync(
    path("package.json"),
    JSON.stringify({ type: "module", exports: { "./entry": { default: "./dist/entry.js" } } }),
  );

  expect(await codeOf(build())).toBe(0);

  expect(readdirSync(path("dist"), { recursive: true }).map(String).sort()).toEqual(
    ["entry.js", "index.js", "inner", join("inner", "lazy.js"), join("inner", "named.js")].sort(),
  );
});
