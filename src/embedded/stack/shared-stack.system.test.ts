import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../../../test/support/wait-for.ts";
import { isAlive } from "../service/data-directory.ts";
import { startEmbeddedStack } from "./index.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "keelson-shared-"));
});
afterEach(() => rmSync(directory, { recursive: true, maxRetries: 20 }));

const env = { NODE_ENV: "test", KEELSON_WATCH: "1" };
const holder = () => JSON.parse(readFileSync(join(directory, "holder.json"), "utf8"));

test("a stack shared by watched processes ends 15 s after the last of them, and releases the directory", async () => {
  const stack = await startEmbeddedStack({ directory, env });
  const { pid } = holder();
  const beganMs = performance.now();
  await stack.close();
  await waitFor(() => expect(isAlive(pid)).toBe(false));
  expect(performance.now() - beganMs).toBeGreaterThan(14_900);
  expect(holder()).toMatchObject({ pid, isEnding: true });

  const own = await startEmbeddedStack({ directory, env: { NODE_ENV: "test" } });
  await own.close();
});

test("names a shared stack that hangs", async () => {
  await startEmbeddedStack({ directory, env });
  const { pid } = holder();
  process.kill(pid, "SIGSTOP");
  try {
    await expect(startEmbeddedStack({ directory, env })).rejects.toThrow(
      `The embedded stack of ${directory} does not answer; end the process that ${directory}/holder.json names`,
    );
  } finally {
    process.kill(pid, "SIGKILL");
  }
});
