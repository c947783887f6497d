import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";

const fixture = join(import.meta.dirname, "../fixtures/life.ts");
const running: { process: StartedProcess; directory: string }[] = [];
afterEach(async () => {
  for (const { process, directory } of running.splice(0)) {
    signalGroup(process, "SIGKILL");
    await process.exited;
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
});

interface LifeOptions {
  readonly shutdown?: Readonly<Record<string, number>>;
  readonly hangs?: "resource";
  readonly env?: Readonly<Record<string, string>>;
}

function envOf(directory: string, { shutdown = {}, hangs, env = {} }: LifeOptions) {
  return {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    AWS_ENDPOINT_URL: undefined,
    SHUTDOWN: JSON.stringify(shutdown),
    HANGS: hangs,
    ...env,
  };
}

async function start(options: LifeOptions = {}): Promise<StartedProcess> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-life-"));
  const started = await startProcess(process.execPath, [fixture], envOf(directory, options));
  running.push({ process: started, directory });
  return started;
}

const get = ({ port }: StartedProcess, path: string) =>
  fetch(`http://127.0.0.1:${port}${path}`).then(
    ({ status }) => status,
    () => "cut off",
  );
const said = ({ logs }: StartedProcess, msg: string) => logs.filter((line) => line["msg"] === msg);
const hears = (one: StartedProcess, msg: string, count = 1) =>
  expect
    .poll(() => said(one, msg).length, { timeout: 30_000, interval: 10 })
    .toBeGreaterThanOrEqual(count);
const completed = (one: StartedProcess) => said(one, "shutdown.completed")[0];

test.each([["KEELSON_WATCH"], ["WATCH_REPORT_DEPENDENCIES"]])(
  "Restarted on each change, as %s says, a process does not linger, and leaves its embedded stack for the next one",
  async (variable) => {
    const directory = mkdtempSync(join(tmpdir(), "keelson-watched-"));
    const env = { KEELSON_DIRECTORY: directory, [variable]: "1" };
    const one = await start({ env });
    one.child.kill("SIGTERM");
    expect(await one.exited).toMatchObject({ code: 0 });
    expect(completed(one)).toMatchObject({ clean: true, phaseMs: { draining: 0 } });

    const two = await start({ env });
    expect(said(two, "embedded.attached")).toHaveLength(1);
    const { pid } = JSON.parse(readFileSync(join(directory, "holder.json"), "utf8"));
    process.kill(pid, "SIGKILL");
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  },
);

test("A shutdown runs its phases in order, finishes requests in flight, and logs how long each phase took", async () => {
  const one = await start({ shutdown: { lingerMs: 5_000 } });
  const slow = get(one, "/wait/10000"); // outlasts the linger, however late the signal comes
  await hears(one, "wait.began");
  one.child.kill("SIGTERM");
  await hears(one, "shutdown.started");
  expect(await get(one, "/health/ready")).toBe(503);
  expect(await get(one, "/health/live")).toBe(200);
  expect(await slow).toBe(200);
  expect(await one.exited).toEqual({ code: 0, signal: null });
  const record = completed(one);
  expect(record).toMatchObject({ clean: true, exitCode: 0, signals: 1, cutOff: [] });
  const { phaseMs, totalMs } = record as unknown as {
    phaseMs: Record<string, number>;
    totalMs: number;
  };
  expect(Object.keys(phaseMs)).toEqual([
    "draining",
    "in-flight-drain",
    "workers-stopped",
    "resources-closed",
  ]);
  expect(phaseMs["draining"]).toBeGreaterThanOrEqual(5_000);
  expect(phaseMs["in-flight-drain"]).toBeGreaterThan(0);
  expect(totalMs).toBe(Object.values(phaseMs).reduce((sum, ms) => sum + ms, 0));
  expect(said(one, "pool.closed")).toHaveLength(1);
});

test("Work that takes too long is cut off and named, and the exit code is 1", async () => {
  const one = await start({ shutdown: { lingerMs: 0, drainMs: 300 } });
  const stuck = get(one, "/wait/60000");
  await hears(one, "wait.began");
  one.child.kill("SIGTERM");
  expect(await stuck).toBe("cut off");
  expect(await one.exited).toEqual({ code: 1, signal: null });
  expect(said(one, "shutdown.requests_cut_off")).toEqual([
    expect.objectContaining({ requests: ["GET /wait/60000"] }),
  ]);
  expect(completed(one)).toMatchObject({ clean: false, exitCode: 1, cutOff: ["in-flight-drain"] });
});

test("A resource that hangs blocks neither the others nor the exit", async () => {
  const one = await start({
    shutdown: { lingerMs: 0, drainMs: 0, totalMs: 9_000 },
    hangs: "resource",
  });
  one.child.kill("SIGTERM");
  expect(await one.exited).toEqual({ code: 1, signal: null });
  expect(said(one, "shutdown.close_failed")).toEqual([
    expect.objectContaining({ resource: "hangs" }),
  ]);
  expect(said(one, "pool.closed")).toHaveLength(1);
});

test("A second signal stops all waiting, and still closes what is open", async () => {
  const one = await start();
  const stuck = get(one, "/wait/60000");
  await hears(one, "wait.began");
  one.child.kill("SIGTERM");
  await hears(one, "shutdown.started");
  // Within 200 ms of the first, the same signal again is taken for its echo. A third would end the process.
  await new Promise((resolve) => setTimeout(resolve, 250));
  one.child.kill("SIGTERM");
  await hears(one, "shutdown.hurried");
  expect(await stuck).toBe("cut off");
  expect(await one.exited).toEqual({ code: 1, signal: null });
  expect(said(one, "pool.closed")).toHaveLength(1);
});

test.each(["before", "after"])(
  "A process whose own signal listener, added %s keelson's, closes the container finishes its requests and exits",
  async (CLOSES) => {
    const one = await start({ shutdown: { lingerMs: 100 }, env: { CLOSES } });
    const slow = get(one, "/wait/800");
    await hears(one, "wait.began");
    one.child.kill("SIGTERM");
    expect(await slow).toBe(200);
    expect(await one.exited).toEqual({ code: 0, signal: null });
    expect(completed(one)).toMatchObject({ clean: true, signals: 1, cutOff: [] });
  },
);

test("A third signal exits the process at once", async () => {
  const one = await start({ hangs: "resource" });
  const insist = setInterval(() => one.child.kill("SIGTERM"), 250);
  expect(await one.exited.finally(() => clearInterval(insist))).toEqual({ code: 1, signal: null });
  expect(said(one, "shutdown.hurried").length).toBeGreaterThanOrEqual(1);
});

test.each([
  ["rejection", "process.unhandled_rejection"],
  ["exception", "process.uncaught_exception"],
])(
  "An uncaught error (%s) is logged with its stack; the process drains, and exits with code 1",
  async (what, msg) => {
    const one = await start({ shutdown: { lingerMs: 100 } });
    const slow = get(one, "/wait/800");
    await hears(one, "wait.began");
    expect(await get(one, `/throw/${what}`)).toBe(200);
    expect(await slow).toBe(200);
    expect(await one.exited).toEqual({ code: 1, signal: null });
    expect(said(one, msg)).toEqual([
      expect.objectContaining({ level: "error", stack: expect.stringContaining("at ") }),
    ]);
    expect(completed(one)).toMatchObject({ exitCode: 1, cutOff: [] });
  },
);

test("A process that is told to stop during its start exits without serving", async () => {
  // A store that accepts connections and never answers.
  const silent = createServer(() => {});
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as { port: number };
  const directory = mkdtempSync(join(tmpdir(), "keelson-life-"));
  const env = {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    AWS_REGION: "x",
    AWS_ACCESS_KEY_ID: "x",
    AWS_SECRET_ACCESS_KEY: "x",
  };
  const shutdown = { lingerMs: 0, drainMs: 0, totalMs: 2_000 };
  const child = spawn(process.execPath, [fixture], {
    env: { ...process.env, ...envOf(directory, { shutdown, env }) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    await once(silent, "connection");
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect(text).toContain("shutdown.started");
    expect(text).not.toContain("server.started");
    expect(code).toBe(1); // the store could not be closed in its time
  } finally {
    child.kill("SIGKILL");
    silent.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
});

test("A log reader that disappears does not crash the process", async () => {
  const one = await start();
  one.child.stdout?.destroy();
  for (let round = 0; round < 20; round += 1) expect(await get(one, "/wait/1")).toBe(200);
  one.child.kill("SIGTERM");
  expect(await one.exited).toEqual({ code: 0, signal: null });
});
