import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("200 clients that stop reading 10 MB of a function that streams hold at most 64 MB", async () => {
  const fixture = join(import.meta.dirname, "../fixtures/slow-readers.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", fixture], {
    timeout: 240_000,
  });
  const { readers, grown, made } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(readers).toBe(200);
  expect(grown).toBeLessThan(64 * 1_048_576);
  expect(made).toBeGreaterThan(readers);
});
