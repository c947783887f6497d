// Mutation tests; `npm run mutate` at the root runs the tests of the pure cores, `npm run mutate -- claim once` the tests of a core
// and of a room, with `--concurrency 1` on a machine that others use. Changes the sources in a copy, one change (a mutant) after the
// other, and has the core's or the room's own tests notice. Prints each score and fails if one is too low. It also fails if a
// mutant of a core survives that survivors.ts has no reason for, or one does not survive that it has.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { type Core, cores, rooms } from "./cores.ts";
import { type Mutant, mutantsOf, type Place, type Report } from "./report.ts";
import { survivors } from "./survivors.ts";

/** Rooms have thousands of mutants, many of which hang, and tests that compute little. */
const effort = {
  core: { score: 90, testTimeoutMs: 60_000, runs: "all" },
  room: { score: 85, testTimeoutMs: 8_000, runs: "few" },
};
const root = join(import.meta.dirname, "../..");
const work = join(root, ".keelson/mutation");
const report = join(work, "report.json");

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { concurrency: { type: "string", default: String(availableParallelism()) } },
});
const names = Object.keys({ ...cores, ...rooms });
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(
    `There is no ${unknown.join(", ")}; name some of ${names.join(", ")}, or none for all cores`,
  );
  process.exit(2);
}

const known = survivors.flatMap(({ file, line, changes }) =>
  changes.map((change) => ({ file, line, change })),
);
const mutated = Object.values(cores).flatMap(({ sources }) =>
  sources.map((path) => basename(path)),
);
for (const place of known)
  if (!mutated.includes(place.file)) fail(`survivors.ts names a file of no core: ${textOf(place)}`);

// Safe: so it is declared in scripts/install.mjs, which has no types.
const { installPackage } = (await import(
  pathToFileURL(join(root, "scripts/install.mjs")).href
)) as {
  installPackage(folder: string, say: (line: string) => void): void;
};
installPackage("test/mutation", console.log);
rmSync(work, { recursive: true, force: true }); // the rest of a killed run
mkdirSync(work, { recursive: true, mode: 0o700 }); // .keelson, where it is made here, holds secrets too
const began = Date.now();
let count = 0;
for (const [name, core] of Object.entries(cores)) {
  if (wanted.length === 0 || wanted.includes(name)) count += hold(name, core);
}
for (const [name, folder] of Object.entries(rooms)) {
  if (wanted.includes(name)) count += measureRoom(name, folder);
}
console.log(`${count} mutants in ${secondsSince(began)} s`);

/** Holds a core to its score and to survivors.ts; gives the number of its mutants. */
function hold(name: string, core: Core): number {
  const missing = [...core.sources, ...core.tests].filter(
    (path) => !existsSync(join(root, "src", path)),
  );
  if (missing.length > 0)
    return fail(`${name}: no file is ${missing.join(", ")}; correct cores.ts`);
  const mutants = mutate(name, core, effort.core);
  const alive = mutants.filter(({ survived }) => survived);
  for (const mutant of alive) {
    if (!known.some((place) => isSame(place, mutant)))
      fail(`${mutant.at} survives without a reason: ${textOf(mutant)}`);
  }
  for (const place of known) {
    const isHere = core.sources.some((path) => basename(path) === place.file);
    if (isHere && !alive.some((mutant) => isSame(place, mutant)))
      fail(`take out of survivors.ts what is noticed: ${textOf(place)}`);
  }
  return mutants.length;
}

/** Holds all files of a folder to the score of rooms and prints the survivors; gives the number of its mutants. */
function measureRoom(name: string, folder: string): number {
  const files = globSync(`${folder}/*.ts`, { cwd: join(root, "src") });
  const isTest = (path: string) => path.endsWith(".test.ts");
  const mutants = mutate(
    name,
    {
      sources: files.filter((path) => !isTest(path)),
      tests: files.filter((path) => isTest(path) && !path.endsWith(".system.test.ts")),
    },
    effort.room,
  );
  for (const mutant of mutants)
    if (mutant.survived) console.log(`  ${mutant.at} ${mutant.status}: ${textOf(mutant)}`);
  return mutants.length;
}

/** Runs the mutants and prints their score, unless Stryker fails, which prints the reason. */
function mutate(name: string, core: Core, given: (typeof effort)["core"]): Mutant[] {
  const coreBegan = Date.now();
  const mutants = run(core, given);
  if (mutants === undefined) {
    fail(`${name}: its mutants could not be run`);
    return [];
  }
  const alive = mutants.filter(({ survived }) => survived);
  const late = mutants.filter(({ status }) => status === "Timeout");
  const score = 100 * (1 - alive.length / mutants.length);
  const found = `${score.toFixed(1)} % of ${mutants.length} mutants, ${alive.length} survive, ${late.length} ran out of time`;
  console.log(`${name}: ${found} (${secondsSince(coreBegan)} s)`);
  if (!(score >= given.score)) fail(`${name}: the score is below ${given.score} %`);
  return mutants;
}

/** `undefined` if Stryker failed, which prints the reason. */
function run(
  { sources, tests }: Core,
  { testTimeoutMs, runs }: (typeof effort)["core"],
): Mutant[] | undefined {
  rmSync(report, { force: true });
  const stryker = join(import.meta.dirname, "node_modules/@stryker-mutator/core/bin/stryker.js");
  const files = (paths: readonly string[]) => paths.map((path) => `src/${path}`).join();
  const { concurrency } = values;
  const args = [
    stryker,
    "run",
    "test/mutation/stryker.json",
    "--mutate",
    files(sources),
    "--concurrency",
    concurrency,
  ];
  const env = {
    ...process.env,
    KEELSON_MUTATION_TESTS: files(tests), // for vitest.config.ts
    KEELSON_MUTATION_TIMEOUT: String(testTimeoutMs), // for vitest.config.ts
    KEELSON_TEST_RUNS: runs, // see test/support/runs.ts
    NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled"), // each mutant starts a thread
  };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env });
  // Safe: it is what Stryker's JSON reporter writes.
  return status === 0 ? mutantsOf(JSON.parse(readFileSync(report, "utf8")) as Report) : undefined;
}

function isSame(one: Place, other: Place): boolean {
  return one.file === other.file && one.line === other.line && one.change === other.change;
}

function textOf({ file, line, change }: Place): string {
  return `${file}\n    ${line}\n    ${change}`;
}

function fail(problem: string): 0 {
  console.log(`  ${problem}`);
  process.exitCode = 1;
  return 0;
}

function secondsSince(ms: number): string {
  return ((Date.now() - ms) / 1000).toFixed(0);
}
