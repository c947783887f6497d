// Measures keelson beside its peers and writes results.json; run by `npm run bench` at the root.
import { writeFileSync } from "node:fs";
import { configResults } from "./config.ts";

const results = await configResults();
console.table(results);
writeFileSync(new URL("results.json", import.meta.url), `${JSON.stringify({ node: process.version, results }, null, 2)}\n`);
