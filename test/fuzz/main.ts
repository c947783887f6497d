// Long runs of the properties in parsers/: `npm run fuzz -- --minutes 10 message`. `npm test` runs them briefly.
import { parseArgs } from "node:util";
import fc from "fast-check";
import { allParsers } from "./all-parsers.ts";
import { corpusOf, entryText } from "./corpus.ts";
import type { Parser } from "./parser.ts";

const usage = `Usage: npm run fuzz -- [--minutes <number>] [--seed <number>] [parser ...]

Tries valid inputs with mistakes on the parsers of bytes that others choose, for the given time, or until a parser
breaks its promise. Prints the smallest input that it finds as an entry for test/fuzz/corpus/<parser>.json, and exits with 1.

  --minutes <number>  the time for each parser; default 1
  --seed <number>     repeats the inputs of an earlier run, in the same order; default: a new one, which is printed
  --help              shows this

Parsers, all by default:
${allParsers.map(({ name, reads }) => `  ${name.padEnd(18)} ${reads}`).join("\n")}
`;

/** An input that takes longer would hold up a process: its computing time, in milliseconds. */
const slowestMs = 2_000;
const [batch, progressMs] = [500, 15_000];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: "boolean", default: false },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
const unknown = positionals.filter((name) => !allParsers.some((parser) => parser.name === name));

if (values.help) console.log(usage);
else if (unknown.length > 0) refuse(`there is no parser ${unknown.join(", ")}`);
else if (!(minutes > 0)) refuse(`--minutes is ${values.minutes}; use a number above 0`);
else if (!Number.isSafeInteger(seed)) refuse(`--seed is ${values.seed}; use a whole number`);
else await run();

function refuse(problem: string): void {
  console.error(`fuzz: ${problem}\n\n${usage}`);
  process.exitCode = 2;
}

async function run(): Promise<void> {
  const write = process.stdout.write.bind(process.stdout);
  const say = (line: string) => void write(`${line}\n`);
  process.stdout.write = () => true; // the lines that the server logs
  say(`fuzz: seed ${seed}`);
  for (const parser of allParsers) {
    if (positionals.length > 0 && !positionals.includes(parser.name)) continue;
    if (!(await tryParser(parser, say))) process.exitCode = 1;
    await parser.close();
  }
  process.stdout.write = write;
}

/** Returns whether the parser has kept its promise. */
async function tryParser({ name, inputs, holds }: Parser, say: (line: string) => void) {
  const beganMs = performance.now();
  const elapsed = () => `${Math.round((performance.now() - beganMs) / 1_000)} s`;
  let [tried, saidMs] = [0, beganMs];
  const timed = async (input: unknown) => {
    const before = process.cpuUsage();
    await holds(input);
    const { user } = process.cpuUsage(before);
    if (user > slowestMs * 1_000) throw new Error(`it computes for ${Math.round(user / 1_000)} ms`);
  };
  for (const { because, input } of corpusOf(name)) {
    try {
      await timed(input);
    } catch (error) {
      say(`${name}: an entry of the corpus fails (${because})\n${textOf(error)}`);
      return false;
    }
  }
  for (let round = 0; performance.now() - beganMs < minutes * 60_000; round += 1) {
    const found = await fc.check(fc.asyncProperty(inputs, timed), {
      seed: seed + round,
      numRuns: batch,
    });
    tried += found.numRuns;
    if (found.failed) {
      const [input] = found.counterexample ?? [];
      const entry = entryText({ parser: name, because: "", input });
      say(`${name}: found after ${tried} inputs and ${elapsed()}, with --seed ${seed + round}`);
      say(`${textOf(found.errorInstance)}\n${entry}`);
      return false;
    }
    if (performance.now() - saidMs < progressMs) continue;
    saidMs = performance.now();
    say(`${name}: ${tried} inputs in ${elapsed()}`);
  }
  say(`${name}: ${tried} inputs in ${elapsed()}, nothing found`);
  return true;
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
