import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { signToken } from "../../src/base/identity/token.ts";
import { systemClock } from "../../src/base/process/clock.ts";
import { deadlinesFrom } from "../../src/base/process/lifecycle.ts";
import { defaultTimes } from "../../src/base/process/shutdown-limits.ts";
import { type StartedProcess, signalGroup, startProcess } from "../support/process.ts";
import type { Row } from "./row.ts";

/** Section 3.1: a real process with a request and a job in flight gets a real SIGTERM. */
export const shutdownRows: readonly Row[] = [
  {
    section: "1",
    sentence:
      "On a termination signal the service drains traffic and closes resources in a fixed order.",
    prove: async () => {
      const { order } = await stopped();
      expect(order).toEqual([
        "shutdown.started",
        "request answered",
        "job.completed",
        "pool.closed",
        "shutdown.completed",
        "exited",
      ]);
    },
  },
  {
    section: "3.1",
    sentence:
      "draining | load balancer removes traffic | after the 3 s linger | in-flight drain | in-flight requests are drained (up to 30 s)",
    prove: async () => {
      const { phaseMs, statuses } = await stopped();
      expect(phaseMs["draining"]).toBeGreaterThanOrEqual(defaultTimes.lingerMs);
      expect(statuses).toEqual({ duringLinger: 200, inFlight: 200 });
    },
  },
  {
    section: "3.1",
    sentence:
      "in-flight drain | requests finished or drain time out | | workers stopped | background workers are stopped",
    prove: async () => {
      const { phaseMs, order } = await stopped();
      expect(Object.keys(phaseMs).indexOf("workers-stopped")).toBe(
        Object.keys(phaseMs).indexOf("in-flight-drain") + 1,
      );
      expect(order.indexOf("job.completed")).toBeGreaterThan(order.indexOf("request answered"));
    },
  },
  {
    section: "3.1",
    sentence:
      "workers stopped | | | resources closed | database and key-value store connections closed",
    prove: async () => {
      const { order } = await stopped();
      expect(order.indexOf("pool.closed")).toBeGreaterThan(order.indexOf("job.completed"));
    },
  },
  {
    section: "3.1",
    sentence:
      "resources closed | | | flushed | observability data is flushed, then the process exits",
    prove: async () => {
      const { order, exit } = await stopped();
      expect(order.slice(-2)).toEqual(["shutdown.completed", "exited"]);
      expect(exit).toEqual({ code: 0, signal: null });
    },
  },
  {
    section: "3.1",
    sentence: "Default timeouts: 3 s linger, 30 s drain, the remainder of a 40 s total.",
    prove: async () => {
      const { lingerMs, drainMs, resourcesMs, totalMs } = deadlinesFrom(0, defaultTimes);
      expect([lingerMs, drainMs, totalMs]).toEqual([3_000, 33_000, 40_000]);
      expect(resourcesMs).toBeGreaterThan(drainMs);
      expect(resourcesMs).toBeLessThanOrEqual(totalMs);
    },
  },
  {
    section: "8",
    sentence: "Shutdown | 3 s linger, 30 s drain, 40 s total | SIGTERM handling",
    prove: async () => {
      expect(defaultTimes).toEqual({ lingerMs: 3_000, drainMs: 30_000, totalMs: 40_000 });
      const { phaseMs } = await stopped();
      expect(phaseMs["draining"]).toBeGreaterThanOrEqual(3_000);
    },
  },
];

interface Stopped {
  /** What happened, in its order. */
  readonly order: readonly string[];
  readonly phaseMs: Readonly<Record<string, number>>;
  readonly statuses: { readonly duringLinger: number; readonly inFlight: number };
  readonly exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null };
}

const memory: { run?: Promise<Stopped> } = {};

/** One such process, which all rows look at. */
function stopped(): Promise<Stopped> {
  memory.run ??= stopOne();
  return memory.run;
}

const secret = "a secret of the conformance tests, long enough";

/** Happenings by the log line that tells of each. */
const happenings: ReadonlyMap<string, string> = new Map([
  ["shutdown.started", "shutdown.started"],
  ["GET /wait/:ms", "request answered"],
  ["job.completed", "job.completed"],
  ["pool.closed", "pool.closed"],
  ["shutdown.completed", "shutdown.completed"],
]);

async function stopOne(): Promise<Stopped> {
  const directory = mkdtempSync(join(tmpdir(), "keelson-shutdown-"));
  const fixture = join(import.meta.dirname, "../fixtures/events.ts");
  const env = {
    PORT: "0",
    NODE_ENV: "development",
    LOG_FORMAT: "json",
    KEELSON_DIRECTORY: directory,
    KEELSON_AUTH_SECRET: secret,
    AWS_ENDPOINT_URL: undefined,
    PAUSE_MS: "12000",
  };
  const one = await startProcess(process.execPath, [fixture], env);
  try {
    const token = await signToken(
      { secret, tenantId: "acme", userId: "ann", roles: [] },
      systemClock,
    );
    const ask = (method: string, path: string) =>
      fetch(`http://127.0.0.1:${one.port}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
    expect((await ask("POST", "/things/last")).status).toBe(200);
    await hears(one, "work.began");
    const slow = ask("GET", "/wait/4500");
    await hears(one, "wait.began");
    one.child.kill("SIGTERM");
    await hears(one, "shutdown.started");
    const duringLinger = (await ask("GET", "/things/last")).status;
    const inFlight = (await slow).status;
    const exit = await one.exited;
    const told = one.logs.flatMap(({ msg, method, route }) => {
      const what = msg === "request.completed" ? `${method} ${route}` : String(msg);
      return happenings.get(what) ?? [];
    });
    const { phaseMs } = one.logs.find(
      ({ msg }) => msg === "shutdown.completed",
    ) as unknown as Stopped;
    return {
      order: [...told, "exited"],
      phaseMs,
      statuses: { duringLinger, inFlight },
      exit,
    };
  } finally {
    signalGroup(one, "SIGKILL");
    await one.exited;
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
}

function hears(one: StartedProcess, msg: string): Promise<void> {
  return expect
    .poll(() => one.logs.map((line) => line["msg"]), { timeout: 30_000, interval: 20 })
    .toContain(msg);
}
