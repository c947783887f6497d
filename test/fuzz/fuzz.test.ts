import { globSync } from "node:fs";
import { basename, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { runs } from "../support/runs.ts";
import { allParsers } from "./all-parsers.ts";
import { corpusOf, entryText } from "./corpus.ts";

afterAll(async () => {
  for (const { close } of allParsers) await close();
});

test("each file of the corpus names a parser, and each entry the same one with a reason", () => {
  const files = globSync("*.json", { cwd: join(import.meta.dirname, "corpus") });
  for (const name of files.map((file) => basename(file, ".json"))) {
    expect(allParsers.map((parser) => parser.name)).toContain(name);
    for (const { parser, because } of corpusOf(name)) {
      expect(parser).toBe(name);
      expect(because.length).toBeGreaterThan(10);
    }
  }
});

test("an entry of the corpus is read as it was printed", () => {
  const input = { bytes: new Uint8Array([0, 255]), texts: ["\ud800", "\0"], numbers: [-0, 1e308] };
  const entry = { parser: "a", because: "b", input };
  expect(JSON.parse(entryText(entry)).input.bytes).toEqual({ $base64: "AP8=" });
});

describe.each(allParsers.map((parser) => [parser.name, parser] as const))("%s", (name, parser) => {
  test("keeps its promise for the corpus", async () => {
    for (const { because, input } of corpusOf(name))
      await expect(parser.holds(input), because).resolves.toBeUndefined();
  });

  test("keeps its promise for valid inputs with mistakes", async () => {
    await fc.assert(fc.asyncProperty(parser.inputs, parser.holds), {
      numRuns: Math.ceil(runs(3_000) * parser.share),
    });
  });
});
