import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { failureOf } from "../fixtures/last-seat.ts";

const fixture = join(import.meta.dirname, "../fixtures/last-seat.ts");

test("a replay as JSON fails in the same way in another process", async () => {
  const found = await failureOf();
  const replay = JSON.stringify(found.replay);
  const { stdout } = await promisify(execFile)(process.execPath, [fixture, replay]);
  const elsewhere: unknown = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(elsewhere).toEqual(found);
});
