import { setImmediate as turn } from "node:timers/promises";
import { afterAll, vi } from "vitest";
import { isTracerRegistered } from "../../src/app/observe/run-observer.ts";

// Files that share a process do not share their stubs: at its end, each file restores the initial state.

const variables = process.env;
const env = { ...process.env };
const directory = process.cwd();

afterAll(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
  // Vitest deletes a stubbed variable from the object that it found first.
  if (process.env !== variables) throw new Error("the tests of this file replaced process.env");
  if (process.cwd() !== directory)
    throw new Error(`the tests of this file left the process in ${process.cwd()}`);
  if (isTracerRegistered()) throw new Error("the tests of this file left a tracer registered");
  if (await isTurning())
    throw new Error("the tests of this file left a loop of setImmediate, which uses a whole core");
});

/** Whether immediates are still there after the turns that ended work takes. */
async function isTurning(): Promise<boolean> {
  for (let turns = 0; turns < 100; turns += 1) {
    await turn();
    if (!process.getActiveResourcesInfo().includes("Immediate")) return false;
  }
  return true;
}
