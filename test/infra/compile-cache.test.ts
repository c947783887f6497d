import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

// Safe: it is what that file exports.
const { makeCompileCache } = (await import(
  new URL("../../scripts/compile-cache.mjs", import.meta.url).href
)) as {
  makeCompileCache(options: object): void;
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "keelson-compile-cache-"));
  mkdirSync(join(folder, "dist"));
  const functions = Array.from(
    { length: 200 },
    (_, index) => `export const f${index} = (a) => a * ${index};\n`,
  );
  writeFileSync(join(folder, "dist", "lambda.mjs"), functions.join(""));
});
afterEach(() => rmSync(folder, { recursive: true }));

const user = String(process.getuid?.() ?? 0);
const make = (options: object) => {
  const said: string[] = [];
  const directory = join(folder, "dist");
  const given = {
    directory,
    node: process.execPath,
    architecture: process.arch,
    user,
    say: (line: string) => said.push(line),
  };
  makeCompileCache({ ...given, ...options });
  return said;
};

/** Runs a bundle as Lambda does, and gives what Node says of its cache. */
function run(directory: string, cache = join(directory, "compile-cache")) {
  const env = {
    NODE_COMPILE_CACHE: cache,
    NODE_COMPILE_CACHE_PORTABLE: "1",
    NODE_DEBUG_NATIVE: "COMPILE_CACHE",
  };
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--expose-gc", join(directory, "lambda.mjs")],
    {
      env,
      encoding: "utf8",
    },
  );
  return { status, isTaken: /lambda\.mjs was accepted/.test(stderr) };
}

test("the cache of a bundle is used where the bundle is deployed", () => {
  expect(make({})).toEqual([
    `compile cache of Node ${process.version} for ${process.arch} and user ${user}`,
  ]);
  renameSync(join(folder, "dist"), join(folder, "task"));
  expect(run(join(folder, "task"))).toEqual({ status: 0, isTaken: true });
});

test("a cache of another user, or one that cannot be used, is ignored, and the function runs without it", () => {
  make({ user: "4242" });
  expect(readdirSync(join(folder, "dist", "compile-cache"))[0]).toMatch(/-4242$/);
  expect(run(join(folder, "dist"))).toEqual({ status: 0, isTaken: false });
  expect(run(join(folder, "dist"), join(process.execPath, "none"))).toEqual({
    status: 0,
    isTaken: false,
  });
});

test("a bundle for another architecture, and a Node binary that does not run, are refused with the fix", () => {
  const other = process.arch === "arm64" ? "x64" : "arm64";
  expect(() => make({ architecture: other })).toThrow(
    `for ${other}: pass the Node of their runtime`,
  );
  expect(() => make({ node: join(folder, "none") })).toThrow("does not load the bundle here");
});
