// docs/cost.md has what the work costs. `npm run cost` measures it and writes the tables.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EmbeddedStack, startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { type Meter, openMeter } from "./meter.ts";
import { measuredPeers } from "./peers.ts";
import { dollarsOf } from "./prices.ts";
import { costTables, type Measured, sizes } from "./tables.ts";
import { measuredWorks } from "./works.ts";

let stack: EmbeddedStack;
let meter: Meter;
let measured: Measured;
beforeAll(async () => {
  stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  meter = await openMeter(stack.endpoint);
  const works: Measured["works"][number][] = [];
  const peers: Measured["peers"][number][] = [];
  for (const [bytes] of sizes) {
    works.push(await measuredWorks(meter, bytes));
    peers.push(await measuredPeers(meter, bytes));
  }
  measured = { works, peers };
});
afterAll(async () => {
  await meter?.close();
  await stack?.close();
});

const path = new URL("../../docs/cost.md", import.meta.url);
const marked = /(<!-- cost: ([\w ]+) -->\n)[\s\S]*?(<!-- \/cost -->)/g;

test("the tables of docs/cost.md are those of the measured work", () => {
  const page = readFileSync(path, "utf8").replaceAll("\r\n", "\n");
  const tables = costTables(measured);
  const written = page.replaceAll(
    marked,
    (_, start: string, name: string, end: string) => `${start}\n${tables[name]}\n\n${end}`,
  );
  if (process.env["npm_lifecycle_event"] === "cost") writeFileSync(path, written);
  else expect(page).toBe(written); // otherwise: npm run cost
  expect([...page.matchAll(marked)].map(([, , name]) => name)).toEqual(Object.keys(tables));
});

test.each([
  ["configuration refresh", 0.25],
  ["claimed write", 1.25],
  ["commit of one item", 3.125],
  ["publish", 4.75],
  ["quota", 3.125],
])("%s of 100 bytes costs at most $%d a million", (name, most) => {
  const work = measured.works[0]?.find((one) => one.name === name);

  expect(work && dollarsOf(work.bill)).toBeLessThanOrEqual(most);
});
