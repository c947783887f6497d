// Measures keelson beside its peers, writes results.json and the table of docs/speed.md; run by `npm run bench` at the
// root. Takes about a minute.
import { writeFileSync } from "node:fs";
import { bundleResults } from "./bundles.ts";
import { configResults } from "./config.ts";
import { httpResults } from "./http.ts";
import type { Result } from "./measure.ts";
import { onceResults } from "./once.ts";
import { writePage } from "./page.ts";
import { resultsOf } from "./runs.ts";
import { startStack } from "./stack.ts";

const results: Result[] = [];

async function measure(what: string, work: () => Promise<readonly Result[]>): Promise<void> {
  console.log(`measuring ${what}`);
  results.push(...(await work()));
}

await measure("configuration", configResults);
await measure("writes that happen once", onceResults);
const stack = await startStack();
try {
  await measure("wrapped handlers and log lines", () => resultsOf("quiet.ts", stack.env));
  await measure("bundles", () => bundleResults(stack.env));
  await measure("HTTP", () => httpResults(stack.env));
} finally {
  await stack.close();
}
console.table(results);
writeFileSync(new URL("results.json", import.meta.url), `${JSON.stringify({ node: process.version, results }, null, 2)}\n`);
writePage(results);
