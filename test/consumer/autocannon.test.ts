import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { createProject, type Project } from "./support/project.ts";

const directory = mkdtempSync(join(tmpdir(), "keelson-limits-"));
const fixture = join(import.meta.dirname, "../fixtures/limited.ts");
/** Requests a second, in the fixture. */
const number = 40;

let project: Project;
let container: StartedProcess | undefined;
beforeAll(async () => {
  project = await createProject({
    name: "limits",
    dependencies: { autocannon: "8.0.0" },
    files: {},
  });
  const env = {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
  };
  container = await startProcess(process.execPath, [fixture], env);
});
afterAll(async () => {
  if (container !== undefined) {
    signalGroup(container, "SIGKILL");
    await container.exited;
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
});

test("autocannon sees a rate limit: at most its number in each second, and 429 beyond", async () => {
  const url = `http://127.0.0.1:${container?.port}/notes`;
  const load = ["--connections", "8", "--overallRate", "500", "--duration", "3", "--json", url];
  const startMs = Date.now();
  const { code, stdout } = await project.run("autocannon", load);
  const windows = Math.floor(Date.now() / 1_000) - Math.floor(startMs / 1_000) + 1;
  expect(code).toBe(0);
  const { statusCodeStats, errors, timeouts } = JSON.parse(stdout);
  const counted = (status: number) => Number(statusCodeStats[status]?.count ?? 0);
  expect([errors, timeouts]).toEqual([0, 0]);
  expect(Object.keys(statusCodeStats)).toEqual(["200", "429"]);
  expect(counted(200)).toBeGreaterThan(number);
  expect(counted(200)).toBeLessThanOrEqual(number * windows);
  expect(counted(429)).toBeGreaterThan(number);
});
