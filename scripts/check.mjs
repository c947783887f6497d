// Everything that is checked without running the tests: types, lint and import directions,
// reasons of ignored branches, the packed package. Prints one line a step; exits 1 after the first failure.
import { spawn } from "node:child_process";
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";

const root = join(import.meta.dirname, "..");
const bin = join(root, "node_modules", ".bin");
const packed = mkdtempSync(join(tmpdir(), "keelson-pack-"));

/** Steps that follow each other. The two sequences run at the same time. */
const ofSources = [
  ["types", () => run("tsc", ["--noEmit"])],
  ["lint, format", () => run("biome", ["check", "--error-on-warnings", "."])],
  ["import directions", () => run("node", ["scripts/layers.mjs"])],
  ["length of files and functions", () => run("node", ["scripts/sources.mjs"])],
  ["English of documents, comments and messages", () => run("node", ["scripts/wording.mjs"])],
  ["pages of the documents", () => run("node", ["scripts/pages.mjs"])],
  ["reasons of ignored branches", reasons],
  [
    "contract of the sample",
    () => contract("examples/files/server.ts", "examples/files/contract.json"),
  ],
  [
    "contract of the starter",
    () => contract("examples/starter/src/server.ts", "examples/starter/contract.json"),
  ],
];
const ofPackage = [
  ["build", () => run("node", ["scripts/build.mjs"])],
  [
    "files that requests pass",
    () => run("node", ["scripts/walks.mjs", "--check", "--dist", "dist"]),
  ],
  ["public types", () => run("node", ["scripts/api/main.mjs", "--check"])],
  ["generated reference", () => run("node", ["scripts/reference/main.mjs", "--check"])],
  ["pack", pack],
  ["publint", () => run("publint", ["run", tarball(), "--strict"])],
  ["types of the package", () => run("attw", [tarball(), "--profile", "esm-only"])],
];

let failed = false;
await Promise.all([inOrder(ofSources), inOrder(ofPackage)]);
rmSync(packed, { recursive: true, force: true });
if (failed) process.exitCode = 1;
else console.log("check: clean");

/** Does nothing more once a step of either sequence has failed. */
async function inOrder(steps) {
  for (const [name, work] of steps) {
    if (failed) return;
    const began = Date.now();
    try {
      await work();
      console.log(`check: ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed = true;
      console.error(`check: ${error.message}`);
    }
  }
}

async function run(command, args) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    shell: process.platform === "win32",
    env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` },
  });
  const [output, errors, status] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise((resolve, reject) => child.once("error", reject).once("close", resolve)),
  ]);
  if (status === 0) return;
  process.stderr.write(`${output}${errors}`);
  fail(`${command} ${args.join(" ")} failed`);
}

function contract(server, file) {
  return run("node", ["src/tools/cli/main.ts", "contract", "check", server, "--file", file]);
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

async function pack() {
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", packed]);
}

function tarball() {
  return join(packed, readdirSync(packed)[0]);
}

function fail(message) {
  throw new Error(message);
}
