import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const grownBy = async (fixture: string) => {
  const path = join(import.meta.dirname, "../fixtures", fixture);
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", path], {
    timeout: 240_000,
  });
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Readonly<Record<string, number>>;
};

test("a stream of 100,000 events keeps none of them", async () => {
  const { grown } = await grownBy("long-stream.ts");
  expect(grown).toBeLessThan(4 * 1_048_576);
});

test("200 clients that stop reading 10 MB of a function that streams hold at most 64 MB", async () => {
  const { readers, grown, made } = await grownBy("slow-readers.ts");
  expect(readers).toBe(200);
  expect(grown).toBeLessThan(64 * 1_048_576);
  expect(made).toBeGreaterThan(200);
});
