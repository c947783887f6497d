import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Item, parseList } from "structured-headers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import { createProject, type Project } from "./support/project.ts";

const directory = mkdtempSync(join(tmpdir(), "keelson-limits-"));
const fixture = join(import.meta.dirname, "../fixtures/limited.ts");
/** Requests a second, in the fixture. */
const number = 40;

/**
 * Prints the result, and how often autocannon has seen each status with its fields: after three seconds, or once a slow machine has
 * seen enough of both statuses.
 */
const load = `import autocannon from "autocannon";
const seen = {};
const names = ["ratelimit-policy", "ratelimit", "retry-after"];
const setupClient = (client) =>
  client.on("headers", ({ statusCode, headers }) => {
    const values = {};
    for (let at = 0; at < headers.length; at += 2) values[headers[at].toLowerCase()] = headers[at + 1];
    const key = JSON.stringify([statusCode, ...names.map((name) => values[name] ?? null)]);
    seen[key] = (seen[key] ?? 0) + 1;
  });
const limits = { connections: 8, overallRate: 500, duration: 3 };
const counted = (status) =>
  Object.entries(seen).reduce((sum, [key, count]) => sum + (JSON.parse(key)[0] === status ? count : 0), 0);
let [errors, timeouts] = [0, 0];
for (let round = 0; round < 20 && Math.min(counted(200), counted(429)) <= ${number}; round += 1) {
  const result = await autocannon({ url: process.argv[2], ...limits, setupClient });
  errors += result.errors;
  timeouts += result.timeouts;
}
console.log(JSON.stringify({ seen, errors, timeouts }));
`;

let project: Project;
let container: StartedProcess | undefined;
beforeAll(async () => {
  project = await createProject({
    name: "limits",
    dependencies: { autocannon: "8.0.0" },
    files: { "load.mjs": load },
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

test("autocannon sees a rate limit: at most its number in each second, 429 beyond, and fields that parse", async () => {
  const url = `http://127.0.0.1:${container?.port}/notes`;
  const startMs = Date.now();
  const { code, stdout, stderr } = await project.run("node", ["load.mjs", url]);
  const windows = Math.floor(Date.now() / 1_000) - Math.floor(startMs / 1_000) + 1;
  expect([code, stderr]).toEqual([0, ""]);
  const { seen, errors, timeouts } = JSON.parse(stdout);
  expect([errors, timeouts]).toEqual([0, 0]);
  const counts = new Map<number, number>();
  for (const [text, count] of Object.entries<number>(seen)) {
    const [status, policy, limit, after] = JSON.parse(text);
    counts.set(status, (counts.get(status) ?? 0) + count);
    expect(fieldOf(policy)).toEqual([["ip-second", { q: number, w: 1 }]]);
    const r = status === 429 ? 0 : expect.any(Number);
    expect(fieldOf(limit)).toEqual([["ip-second", { r, t: 1 }]]);
    expect(after).toBe(status === 429 ? "1" : null);
  }
  const counted = (status: number) => counts.get(status) ?? 0;
  expect([...counts.keys()].toSorted()).toEqual([200, 429]);
  expect(counted(200)).toBeGreaterThan(number);
  expect(counted(200)).toBeLessThanOrEqual(number * windows);
  expect(counted(429)).toBeGreaterThan(number);
});

function fieldOf(text: string): unknown[] {
  // Safe cast: no member is a list.
  return parseList(text).map((member) => {
    const [name, parameters] = member as Item;
    return [name, Object.fromEntries(parameters)];
  });
}
