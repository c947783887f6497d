import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { startEmbeddedStack } from "../../src/embedded/stack/index.ts";
import { checkConfig, checkReaders } from "./check-config.ts";
import { checkFootprint, footprintOf } from "./check-footprint.ts";
import { checkEntries, checkOwners } from "./check-rows.ts";
import { Client, type ClientParts } from "./client.ts";
import { createClock, type SoakClock } from "./clock.ts";
import { type Disturbed, disturb } from "./disturbances.ts";
import { type FaultyGateway, startFaultyGateway } from "./faulty-gateway.ts";
import { createFindings, type Findings } from "./findings.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { createLatencies } from "./latency.ts";
import { createLedger } from "./ledger.ts";
import { type LineWatch, watchLines } from "./line-watch.ts";
import type { SoakOptions } from "./options.ts";
import { environmentOf } from "./process-parts.ts";
import { createRandom, type Random } from "./random.ts";
import { settled } from "./settled.ts";
import { openStored, type Stored } from "./stored.ts";
import { createTenants } from "./tenants.ts";

const queues = ["keelson-events", "keelson-jobs", "keelson-jobs.fifo"];
const clientCount = 6;
/** The longest pause of a client between two requests: the load leaves other work of the machine its share. */
const [pauseMs, readerPauseMs] = [400, 30];
/** Share of the load before which footprints count, and after which nothing is disturbed any more. */
const [warmShare, calmShare] = [0.25, 0.9];

/**
 * Runs the soak, and reports its progress.
 *
 * @param interrupted - breaks off. Processes do not outlive the soak.
 * @returns the violations that it found.
 */
export async function runSoak(
  { minutes, seed, defect }: Pick<SoakOptions, "minutes" | "seed" | "defect">,
  say: (line: string) => void,
  interrupted: AbortSignal,
): Promise<Findings> {
  const random = createRandom(seed);
  const findings = createFindings();
  const tenants = await createTenants();
  const lines = watchLines(tenants, findings);
  const directory = mkdtempSync(join(tmpdir(), "keelson-soak-"));
  const stack = await startEmbeddedStack({ env: { NODE_ENV: "test" } });
  const gateway = await startFaultyGateway(stack.endpoint, random);
  const stored = openStored(stack);
  const clock = createClock(directory);
  let fleet: Fleet | undefined;
  try {
    const env = environmentOf(stack.env, gateway.endpoint, clock.file, defect);
    const ended = (how: string) => findings.add("no process ended by itself", how);
    fleet = await startFleet(
      { env, onLine: lines.line, ended },
      { runtime: await installedRuntime(say), clock, sqs: stored.sqs, queues },
    );
    const parts: ClientParts = {
      ...{ random, tenants, findings, ledger: createLedger(), latencies: createLatencies() },
      hostOf: fleet.hostOf,
    };
    const running = { minutes, parts, fleet, gateway, clock, stored, lines, random };
    await Promise.race([soak(running, say), rejectedBy(interrupted)]);
  } finally {
    await fleet?.stop();
    stored.close();
    gateway.close();
    await stack.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 20 });
  }
  return findings;
}

async function rejectedBy(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

interface Running {
  readonly minutes: number;
  readonly parts: ClientParts;
  readonly fleet: Fleet;
  readonly gateway: FaultyGateway;
  readonly clock: SoakClock;
  readonly stored: Stored;
  readonly lines: LineWatch;
  readonly random: Random;
}

async function soak(running: Running, say: (line: string) => void): Promise<void> {
  const { minutes, parts, fleet, clock, stored, lines } = running;
  const { ledger, findings, tenants } = parts;
  const clients = Array.from({ length: clientCount }, (_, n) => new Client(parts, n, clientCount));
  const [first] = clients as [Client, ...Client[]]; // safe: there are several
  for (const tenant of tenants.all) await first.introduce(tenant);

  const totalMs = minutes * 60_000;
  const stopMinutes = sayMinutes(parts, say);
  const warm = load(clients);
  await sleep(totalMs * warmShare);
  await warm.stop();
  const starts = await footprints(fleet);
  const whole = load(clients);
  const calm = new AbortController();
  const disturbing = disturb(running, calm.signal);
  disturbing.catch(() => undefined); // it is awaited below
  await sleep(totalMs * (calmShare - warmShare));
  calm.abort();
  await sleep(totalMs * (1 - calmShare));
  const disturbed = await disturbing;
  clock.stepAhead();
  await whole.stop();
  stopMinutes();

  const moved = await settled(stored, queues, findings);
  const rows = await stored.rows();
  checkEntries(rows, ledger, findings);
  checkOwners(rows, tenants, findings);
  await checkReaders(fleet.all, checkConfig(rows, ledger, tenants, findings), findings);
  sayTotals(running, disturbed, moved, say);
  for (const [name, host] of Object.entries(fleet.survivors)) {
    const start = starts.get(name);
    if (start !== undefined) say(await checkFootprint(name, host, start, findings));
  }
  say(`${lines.lines} lines and ${rows.length} rows were searched`);
}

/** Has all clients send requests until it is stopped. */
function load(clients: readonly Client[]) {
  const end = new AbortController();
  const [reader] = clients;
  const sending = Promise.all([
    ...clients.map((client) => client.run(end.signal, pauseMs)),
    reader?.read(end.signal, readerPauseMs),
  ]);
  sending.catch(() => undefined); // `stop` throws it
  return {
    /** Resolves once each client has its last answer. */
    stop: async () => {
      end.abort();
      await sending;
    },
  };
}

async function footprints(fleet: Fleet) {
  const entries = Object.entries(fleet.survivors).map(
    async ([name, host]) => [name, await footprintOf(host)] as const,
  );
  return new Map(await Promise.all(entries));
}

/** Prints the requests of each minute. @returns a function that ends this, with the last part of a minute. */
function sayMinutes({ latencies }: ClientParts, say: (line: string) => void): () => void {
  let minute = 0;
  const tell = () => say(`minute ${++minute}: ${latencies.take()}`);
  const timer = setInterval(tell, 60_000);
  return () => {
    clearInterval(timer);
    tell();
  };
}

function sayTotals(
  { parts: { ledger, latencies }, gateway }: Running,
  { signals, stepsMs }: Disturbed,
  moved: number,
  say: (line: string) => void,
): void {
  const outcomes = Map.groupBy(ledger.entries.values(), (outcome) => outcome);
  const counts = [...outcomes].map(([outcome, of]) => `${of.length} ${outcome}`).join(", ");
  say(`all: ${latencies.total()}`);
  say(
    `writes: ${counts}; ${ledger.configWrites.length} of configuration; ${ledger.retries} retries`,
  );
  const faults = Object.entries(gateway.faults).map(([fault, count]) => `${count} ${fault}`);
  say(`calls of the store: ${faults.join(", ")}; ${moved} dead letters were moved back`);
  const told = Object.entries(signals).map(([name, count]) => `${count} ${name}`);
  const steps = stepsMs.map((ms) => (ms / 1_000).toFixed(0)).join(", ");
  say(`signals: ${told.join(", ") || "none"}; steps of the clock in seconds: ${steps || "none"}`);
}

/** Installs Lambda's runtime if it is missing. */
async function installedRuntime(say: (line: string) => void): Promise<string> {
  const script = join(import.meta.dirname, "../../scripts/package-emulator.mjs");
  // Safe: a module without types exports it.
  const { installRuntime } = (await import(pathToFileURL(script).href)) as {
    installRuntime(say: (line: string) => void): { readonly runtime: string };
  };
  return installRuntime(say).runtime;
}
