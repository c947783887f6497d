import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildServer, defineFeature } from "keelson";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestStack, type TestStack } from "../../src/tools/testing/app/test-stack.ts";

const root = join(import.meta.dirname, "../..");

/** Runs the script to its end, which it comes to by itself. */
async function run(
  id: string,
  env: Readonly<Record<string, string>>,
): Promise<{ lines: string[]; logs: Record<string, unknown>[] }> {
  const parameters = [
    "--import",
    join(root, "test/support/keelson-sources.mjs"),
    join(root, "test/fixtures/script.ts"),
    id,
  ];
  const { AWS_ENDPOINT_URL: _none, ...own } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, parameters, {
    env: { ...own, LOG_FORMAT: "json", ...env },
    timeout: 60_000,
  });
  const lines = stdout.trim().split("\n");
  const isRecord = (line: string) => line.startsWith("{");
  return {
    lines: lines.filter((line) => !isRecord(line)),
    logs: lines.filter(isRecord).map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

const directory = mkdtempSync(join(tmpdir(), "keelson-script-"));
let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack(buildServer({ features: [defineFeature("none", () => {})] }));
});
afterAll(async () => {
  await stack.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

describe.each([
  ["on the embedded stack", () => ({ NODE_ENV: "development", KEELSON_DIRECTORY: directory })],
  ["on endpoints that the environment names", () => ({ NODE_ENV: "production", ...stack.env })],
])("a script %s", (_, env) => {
  test("runs once for its request ID, closes its resources, and exits by itself", async () => {
    const first = await run("import-1", env());
    expect(first.lines).toEqual([expect.stringMatching(/^made acme\/.{36}, 1 rows$/), "closed"]);
    expect(first.logs).toContainEqual(
      expect.objectContaining({
        level: "info",
        msg: "run.started",
        reason: "import",
        tenantId: "acme",
        requestId: "import-1",
      }),
    );
    const repeat = await run("import-1", env());
    expect(repeat.lines).toEqual(first.lines);
    const other = await run("import-2", env());
    expect(other.lines).toEqual([expect.stringMatching(/^made acme\/.{36}, 2 rows$/), "closed"]);
  });
});
