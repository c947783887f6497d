import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { historyPartition, tenantPartition } from "../../src/parts/config/read/rows.ts";
import { checkConfig, checkReaders } from "./check-config.ts";
import { checkFootprint, tolerance } from "./check-footprint.ts";
import { checkEntries, checkOwners } from "./check-rows.ts";
import { createClock } from "./clock.ts";
import { defectNames, defectOf } from "./defects.ts";
import { checks, createFindings, type Findings } from "./findings.ts";
import type { Footprint } from "./footprint.ts";
import type { Host } from "./host.ts";
import { createLatencies } from "./latency.ts";
import { createLedger } from "./ledger.ts";
import { watchLines } from "./line-watch.ts";
import { createRandom } from "./random.ts";
import { reportOf } from "./report.ts";
import { stepKey } from "./server.ts";
import { createTenants, type Tenants } from "./tenants.ts";

let tenants: Tenants;
beforeAll(async () => {
  tenants = await createTenants();
});

const failedIn = (findings: Findings) => checks.filter((check) => findings.of(check).count > 0);

describe("of writes,", () => {
  const counted = (...amounts: readonly number[]) =>
    ["write", "event", "note", "job"].map((kind, n) => ({
      kind,
      entry: "e",
      amount: amounts[n] ?? 0,
    }));
  const found = (outcome: "accepted" | "refused" | "unknown", ...amounts: readonly number[]) => {
    const [ledger, findings] = [createLedger(), createFindings()];
    ledger.entries.set("e", outcome);
    checkEntries(amounts.length === 0 ? [] : counted(...amounts), ledger, findings);
    return failedIn(findings);
  };

  test("one that happened once, with each of its events and jobs, is right", () => {
    expect([found("accepted", 1, 1, 1, 1), found("unknown", 1, 1, 1, 1)]).toEqual([[], []]);
    expect([found("unknown"), found("refused")]).toEqual([[], []]);
  });

  test("one that is missing or doubled is found", () => {
    const check = "each write that was accepted happened exactly once";
    expect(found("accepted")).toEqual([check]);
    expect(found("accepted", 2, 1, 1, 1)).toEqual([check]);
    expect(found("unknown", 2, 1, 1, 1)).toEqual([
      "a write without an answer happened at most once",
    ]);
  });

  test("an event or a job that is missing, doubled or without its write is found", () => {
    const check = "each event and each job of a write happened exactly once";
    expect(found("accepted", 1, 1, 0, 1)).toEqual([check]);
    expect(found("accepted", 1, 1, 1, 2)).toEqual([check]);
    expect(found("unknown", 0, 1, 0, 0)).toEqual(["no event happened without its write"]);
    expect(found("refused", 0, 0, 1, 0)).toEqual([
      "a refused write left nothing, and no event",
      "no event happened without its write",
    ]);
  });
});

describe("of configuration,", () => {
  const rowsOf = (...values: readonly number[]) => {
    const pk = tenantPartition(tenants.all[0].id);
    const history = values.map((value, n) => ({
      pk: historyPartition(pk),
      sk: `${stepKey}#${n + 1}`,
      version: n + 1,
      value,
    }));
    return [...history, { pk, sk: stepKey, value: values.at(-1), version: values.length }];
  };
  const found = (rows: readonly Readonly<Record<string, unknown>>[]) => {
    const [ledger, findings] = [createLedger(), createFindings()];
    ledger.configWrites.push({ tenant: 0, value: 1, isAccepted: true });
    ledger.configWrites.push({ tenant: 0, value: 2, isAccepted: false });
    checkConfig(rows, ledger, tenants, findings);
    return failedIn(findings);
  };

  test("a write that is lost, doubled or replaced without a version is found", () => {
    expect([found(rowsOf(1)), found(rowsOf(1, 2))]).toEqual([[], []]);
    const check = ["no write of configuration is lost or doubled"];
    expect([found(rowsOf(2)), found(rowsOf(1, 2, 1))]).toEqual([check, check]);
    expect(found(rowsOf(1, 3, 4).toSpliced(1, 1))).toEqual(check);
    expect(found(rowsOf(1, 2).map((row) => ({ ...row, value: 1 })))).toEqual(check);
  });

  test("a process is asked until it reads the last value", async () => {
    const findings = createFindings();
    let reads = 0;
    const send = async () => {
      reads += 1;
      const body = `{"step":${reads},"motto":""}`;
      return { status: 200, text: body, body, isReplayed: false };
    };
    const host: Host = { kind: "container", send };
    await checkReaders([host], new Map([[tenants.all[0], 2]]), findings);
    expect([reads, failedIn(findings)]).toEqual([2, []]);
  });
});

test("IDs of two tenants in one row or line are found, and so is a warning of leaked listeners", () => {
  const [one, other] = tenants.all.map(({ id }) => id);
  const findings = createFindings();
  const watch = watchLines(tenants, findings);
  checkOwners([{ one }, { other }], tenants, findings);
  watch.line(`{"tenantId":"${one}"}`);
  expect(failedIn(findings)).toEqual([]);
  checkOwners([{ one, other }], tenants, findings);
  watch.line(`{"tenantId":"${one}","of":"${other}"}`);
  watch.line("MaxListenersExceededWarning: Possible EventTarget memory leak detected");
  expect(failedIn(findings)).toEqual([
    "no line has the IDs of two tenants",
    "no row has the IDs of two tenants",
    "no process warned of leaked listeners",
  ]);
});

test("a footprint may be larger by the tolerance, and for as long as connections take to close", async () => {
  const start: Footprint = {
    heapBytes: 30_000_000,
    handles: 9,
    sockets: 6,
    files: 21,
    listeners: 30,
  };
  const sizes = [start.sockets + tolerance.sockets + 1, start.sockets + tolerance.sockets];
  const send = async () => {
    const body = JSON.stringify({ ...start, sockets: sizes.shift() ?? 0 });
    return { status: 200, text: body, body, isReplayed: false };
  };
  const findings = createFindings();
  const line = await checkFootprint("it", { kind: "function", send }, start, findings);
  expect([failedIn(findings), sizes]).toEqual([[], []]);
  expect(line).toContain("sockets 6 -> 12");
});

test("the report counts each check as a test", () => {
  const findings = createFindings();
  expect(reportOf(findings)).toMatchObject({ numFailedTests: 0, success: true });
  for (let n = 1; n <= 7; n += 1) findings.add("no event happened without its write", `e${n}`);
  const { numTotalTests, numPassedTests, numFailedTests, success, testResults } =
    reportOf(findings);
  expect([numTotalTests, numPassedTests, numFailedTests, success]).toEqual([
    checks.length,
    checks.length - 1,
    1,
    false,
  ]);
  expect(
    testResults[0]?.assertionResults.flatMap(({ failureMessages }) => failureMessages),
  ).toEqual(["7 times: e1\ne2\ne3\ne4\ne5"]);
});

test("times are given for a minute, and for all", () => {
  const latencies = createLatencies();
  for (let ms = 1; ms <= 100; ms += 1) latencies.record(ms);
  expect(latencies.take()).toBe("100 requests, p50 51 ms, p99 100 ms, p99.9 100 ms");
  expect(latencies.take()).toBe("0 requests, p50 -, p99 -, p99.9 -");
  expect(latencies.total()).toContain("100 requests");
});

test("a seed repeats its random decisions", () => {
  const some = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 20 }, () => random.below(1_000));
  };
  expect(some(1)).toEqual(some(1));
  expect(some(1)).not.toEqual(some(2));
});

test("the code of each defect is still where the defect is put back", () => {
  for (const name of defectNames) {
    const { module, now, once } = defectOf(name);
    const source = readFileSync(join(import.meta.dirname, "../..", module), "utf8");
    expect(source.split(now).length, `${name} in ${module}`).toBe(2);
    expect(source).not.toContain(once);
  }
});

describe("the clock of a process", () => {
  const directory = mkdtempSync(join(tmpdir(), "keelson-soak-"));
  afterAll(() => rmSync(directory, { recursive: true }));

  test("follows the clock of the soak, and dates that are given stay", () => {
    const clock = createClock(directory);
    clock.stepAhead();
    const program = "console.log(JSON.stringify([Date.now(), new Date(5), new Date()]))";
    const imported = join(import.meta.dirname, "stepped-clock.ts");
    const { stdout } = spawnSync(process.execPath, ["--import", imported, "-e", program], {
      encoding: "utf8",
      env: { ...process.env, SOAK_CLOCK: clock.file },
    });
    const [now, given, today] = JSON.parse(stdout) as [number, string, string]; // safe: the program prints them
    const aheadMs = clock.now() - Date.now();
    expect(now - aheadMs).toBeLessThanOrEqual(Date.now());
    expect(now - Date.now()).toBeGreaterThan(aheadMs / 2);
    expect([given, Date.parse(today) >= now]).toEqual([new Date(5).toISOString(), true]);
  });
});
