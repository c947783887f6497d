// Measures keelson and its peers, and curves by size; writes results.json and the tables of docs/speed.md, docs/container.md and
// docs/growth.md; run by `npm run bench` at the root. Takes about thirteen minutes, most of them for the drains and the type checks;
// `npm run bench -- http bundles` measures only these and keeps the figures of the others; `npm run bench -- pages` measures nothing,
// and writes the pages after a change of `goals.ts`. Exits with 1 if a row misses its goal without a reason, or a curve its bound.
import { readFileSync, writeFileSync } from "node:fs";
import { bundleResults } from "./bundles.ts";
import { coldResults } from "./cold.ts";
import { configResults } from "./config.ts";
import { drainResults } from "./drains.ts";
import { frontResults } from "./fronts.ts";
import { judged, silentMisses } from "./goals.ts";
import type { Growth } from "./growth/curve.ts";
import { growthCurves } from "./growth/growth.ts";
import { httpResults } from "./http.ts";
import { jsonResults } from "./json.ts";
import { limitResults } from "./limits.ts";
import type { Result } from "./measure.ts";
import { memoryResults } from "./memory.ts";
import { observeResults } from "./observe.ts";
import { onceResults } from "./once.ts";
import { writeGrowth, writePages } from "./page.ts";
import { raceResults } from "./races.ts";
import { resultsOf } from "./runs.ts";
import { startStack } from "./stack.ts";
import { typecheckResults } from "./typecheck.ts";
import { wallResults } from "./wall.ts";

type Env = Readonly<Record<string, string>>;

const groups: Readonly<Record<string, (env: Env) => Promise<readonly Result[]>>> = {
  configuration: configResults,
  writes: onceResults,
  wrapped: (env) => resultsOf("quiet.ts", env),
  observe: observeResults,
  json: async () => jsonResults(),
  wall: wallResults,
  output: (env) => resultsOf("output.ts", env),
  bundles: bundleResults,
  cold: coldResults,
  http: httpResults,
  fronts: frontResults,
  limits: limitResults,
  memory: memoryResults,
  races: raceResults,
  drains: drainResults,
  typecheck: typecheckResults,
  pages: async () => [],
};

const wanted = process.argv.slice(2);
const names = [...Object.keys(groups), "growth"];
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(
    `There is no ${unknown.join(", ")}; measure some of ${names.join(", ")}, or all without a name`,
  );
  process.exit(2);
}

const file = new URL("results.json", import.meta.url);
// Safe: it is what this file writes.
const { results: before, growth: curves } = JSON.parse(readFileSync(file, "utf8")) as {
  results: Result[];
  growth: Growth[];
};
const results = new Map(before.map((result) => [result.id, result]));
let growth = curves;
const stack = await startStack();
try {
  for (const [name, measure] of Object.entries(groups)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    console.log(`measuring ${name}`);
    for (const result of await measure(stack.env)) results.set(result.id, result);
  }
  if (wanted.length === 0 || wanted.includes("growth")) growth = await growthCurves(stack.env);
} finally {
  await stack.close();
}
const all = [...results.values()].map(judged);
console.table(all.map(({ missed: _reason, ...figures }) => figures));
writeFileSync(
  file,
  `${JSON.stringify({ node: process.version, results: all, growth }, null, 2)}\n`,
);
writePages(all);
writeGrowth(growth);
const steep = growth
  .filter(({ status }) => status === "missed")
  .map(({ id, slope, bound }) => `${id} grows with a slope of ${slope}, above ${bound}`);
for (const problem of [...silentMisses(all), ...steep]) {
  console.error(problem);
  process.exitCode = 1;
}
