// Everything that is checked without running the tests: types, lint and import directions,
// reasons of ignored branches, the packed package. Prints one line a step; exits 1 at the first failure.
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");
const packed = mkdtempSync(join(tmpdir(), "keelson-pack-"));

try {
  step("types", () => run("tsc", ["--noEmit"]));
  step("lint, format", () => run("biome", ["check", "--error-on-warnings", "."]));
  step("import directions", () => run("node", ["scripts/layers.mjs"]));
  step("length of files and functions", () => run("node", ["scripts/sources.mjs"]));
  step("English of documents, comments and messages", () => run("node", ["scripts/wording.mjs"]));
  step("pages of the documents", () => run("node", ["scripts/pages.mjs"]));
  step("reasons of ignored branches", reasons);
  step("build", () => run("node", ["scripts/build.mjs"]));
  step("files that requests pass", () =>
    run("node", ["scripts/walks.mjs", "--check", "--dist", "dist"]),
  );
  step("contract of the sample", () =>
    run("node", [
      "src/tools/cli/main.ts",
      "contract",
      "check",
      "examples/files/server.ts",
      "--file",
      "examples/files/contract.json",
    ]),
  );
  step("contract of the starter", () =>
    run("node", [
      "src/tools/cli/main.ts",
      "contract",
      "check",
      "examples/starter/src/server.ts",
      "--file",
      "examples/starter/contract.json",
    ]),
  );
  step("public types", () => run("node", ["scripts/api/main.mjs", "--check"]));
  step("generated reference", () => run("node", ["scripts/reference/main.mjs", "--check"]));
  const tarball = step("pack", pack);
  step("publint", () => run("publint", ["run", tarball, "--strict"]));
  step("types of the package", () => run("attw", [tarball, "--profile", "esm-only"]));
  console.log("check: clean");
} catch (error) {
  console.error(`check: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(packed, { recursive: true, force: true });
}

function step(name, work) {
  const began = Date.now();
  const result = work();
  console.log(`check: ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  return result;
}

function run(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    encoding: "utf8",
    shell: process.platform === "win32",
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
  });
  if (status === 0) return stdout;
  process.stderr.write(`${stdout ?? ""}${stderr ?? ""}${error ? `${error.message}\n` : ""}`);
  fail(`${command} ${args.join(" ")} failed`);
}

/** A branch that no test reaches is marked, and the mark gives the reason: `v8 ignore next -- why`. */
function reasons() {
  const bare = globSync("src/**/*.ts", { cwd: root }).flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        /v8 ignore (?!stop)/.test(line) && !/v8 ignore [a-z0-9 ]+-- \S/.test(line)
          ? [`${file}:${index + 1}`]
          : [],
      ),
  );
  if (bare.length > 0) fail(`ignored branches without a reason: ${bare.join(", ")}`);
}

function pack() {
  const [{ filename }] = JSON.parse(
    run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", packed]),
  );
  return join(packed, filename);
}

function fail(message) {
  throw new Error(message);
}
