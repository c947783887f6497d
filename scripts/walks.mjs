// Counts the files of dist/ that a request, a message or a signal goes through, and how often it changes folders on its way.
// `npm run walks -- --help` lists the options.
import { execFileSync, fork } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { instrument } from "./walks/instrument.mjs";
import { measure } from "./walks/measure.mjs";

const usage = `Usage: npm run walks -- [options]

Prints how many files of dist/ each walk enters, warm, and how often the folder changes between one function entry and the
next. Files that are entered between the event and its answer count, except embedded/ and tools/testing/.

Options:
  --list <name>   also prints the entries of this walk, for example "lambda get"; may be repeated
  --check         fails if a walk is longer than scripts/walks/budgets.json allows
  --json          prints everything, entries included, as JSON
  --dist <path>   measures a dist/ that exists; default: builds one from src/
  --help          prints this text`;

const root = join(import.meta.dirname, "..");
const { values: given } = parseArgs({
  options: {
    list: { type: "string", multiple: true, default: [] },
    check: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    dist: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (given.help) console.log(usage);
else process.exitCode = await main();

async function main() {
  // In the root, so that its files find their packages. The next build deletes the folder of a killed process.
  const folder = mkdtempSync(join(root, ".dist-walks-"));
  try {
    const { dist, instrumented } = build(folder);
    const functions = instrument(instrumented);
    const walks = (await record(dist, instrumented)).map(({ name, entries }) => {
      const entered = entries.map((id) => functions[id]);
      return { name, ...measure(entered), entries: entered };
    });
    const unknown = given.list.filter((name) => !walks.some((walk) => walk.name === name));
    if (unknown.length > 0) {
      console.error(
        `walks: there is no ${unknown.join(", ")}; there is ${walks.map(({ name }) => name).join(", ")}`,
      );
      return 2;
    }
    if (given.json)
      console.log(JSON.stringify({ leftOut: ["embedded/", "tools/testing/"], walks }, null, 2));
    else print(walks);
    return given.check ? exceeded(walks) : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Names each walk that is longer than its budget of files and changes of folder. */
function exceeded(walks) {
  const budgets = JSON.parse(readFileSync(join(import.meta.dirname, "walks/budgets.json"), "utf8"));
  let code = 0;
  for (const { name, files, changes } of walks) {
    const [maxFiles, maxChanges] = budgets[name];
    if (files <= maxFiles && changes <= maxChanges) continue;
    console.error(
      `walks: ${name} enters ${files} files and changes folders ${changes} times; allowed are ${maxFiles} and ${maxChanges} (scripts/walks/budgets.json)`,
    );
    code = 1;
  }
  return code;
}

/** One unchanged dist/, for the code around the walks, and one that is instrumented. */
function build(folder) {
  const [dist, instrumented] = [join(folder, "plain"), join(folder, "instrumented")];
  if (given.dist === undefined) {
    const tsc = join(
      dirname(createRequire(import.meta.url).resolve("typescript/package.json")),
      "bin",
      "tsc",
    );
    const command = [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", dist];
    execFileSync(process.execPath, command, { stdio: ["ignore", 2, 2] });
  } else {
    cpSync(resolve(given.dist), dist, { recursive: true });
  }
  cpSync(dist, instrumented, { recursive: true });
  return { dist, instrumented };
}

/** Runs the walks in a separate process, because servers log to its standard output and read its environment. */
async function record(dist, instrumented) {
  const { bin, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const at = (folder, path) => join(folder, path.replace("./dist/", ""));
  const { startEmbeddedStack } = await import(at(dist, exports["./embedded"].default));
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  try {
    const secret = "walks".repeat(10);
    const token = execFileSync(
      process.execPath,
      [at(dist, bin.keelson), "token", "--tenant", "acme", "--user", "ann", "--roles", "admin"],
      { env: { ...process.env, KEELSON_AUTH_SECRET: secret }, encoding: "utf8" },
    ).trim();
    const entries = Object.keys(exports).filter((name) => name !== "./package.json");
    const modules = Object.fromEntries(
      entries.map((name) => [name, at(instrumented, exports[name].default)]),
    );
    const child = fork(join(import.meta.dirname, "walks", "walk.mjs"), {
      env: { ...environment(), ...stack.env, NODE_ENV: "production", KEELSON_AUTH_SECRET: secret },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    return await new Promise((done, failed) => {
      child.once("message", done);
      child.once("exit", (code, signal) =>
        failed(new Error(`walks: the process that walks ended with ${signal ?? code}`)),
      );
      child.send({ modules, token });
    });
  } finally {
    await stack.close();
  }
}

/** The caller's environment, without the variables that servers read. */
function environment() {
  const read = /^(AWS_|KEELSON_|LOG_|POWERTOOLS_|NODE_|PORT$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !read.test(name)));
}

function print(walks) {
  const rows = walks.map(({ name, files, changes, functions }) => [
    name,
    files,
    changes,
    functions,
  ]);
  for (const [name, ...numbers] of [["walk", "files", "changes of folder", "entries"], ...rows]) {
    console.log(
      `${name.padEnd(16)}${numbers.map((number) => String(number).padStart(20)).join("")}`,
    );
  }
  console.log(
    "\nFiles of dist/ without embedded/ and tools/testing/, between the event and its answer, warm.",
  );
  for (const { name, steps } of walks.filter(({ name }) => given.list.includes(name))) {
    console.log(`\n${name}`);
    for (const { file, functions } of steps) console.log(`  ${file}: ${functions.join(", ")}`);
  }
}
