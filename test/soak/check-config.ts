import { setTimeout as sleep } from "node:timers/promises";
import { historyPartition, tenantPartition } from "../../src/parts/config/read/rows.ts";
import type { Findings } from "./findings.ts";
import type { Host } from "./host.ts";
import type { Ledger } from "./ledger.ts";
import { stepKey } from "./server.ts";
import type { Row } from "./stored.ts";
import type { SoakTenant, Tenants } from "./tenants.ts";

interface Version {
  readonly version: number;
  readonly value: unknown;
}

/** The history has each accepted write once, and no version is missing. @returns the last value of each tenant. */
export function checkConfig(
  rows: readonly Row[],
  { configWrites }: Ledger,
  tenants: Tenants,
  findings: Findings,
): ReadonlyMap<SoakTenant, unknown> {
  const last = new Map<SoakTenant, unknown>();
  for (const tenant of tenants.all) {
    const lost = (what: string) =>
      findings.add("no write of configuration is lost or doubled", `${tenant.id}: ${what}`);
    const versions = historyOf(rows, tenant);
    versions.forEach(({ version }, index) => {
      if (version !== index + 1) lost(`version ${index + 1} is ${version}`);
    });
    const values = versions.map(({ value }) => value);
    const own = configWrites.filter((write) => write.tenant === tenant.n);
    for (const { value, isAccepted } of own) {
      const count = values.filter((stored) => stored === value).length;
      if (count > 1 || (isAccepted && count === 0)) lost(`${value} is ${count} times in it`);
    }
    const current = rows.find(({ pk, sk }) => sk === stepKey && pk === tenantPartition(tenant.id));
    if (versions.length > 0 && current?.["value"] !== values.at(-1))
      lost(`the row has ${current?.["value"]}, its last version ${values.at(-1)}`);
    if (current !== undefined) last.set(tenant, current["value"]);
  }
  return last;
}

function historyOf(rows: readonly Row[], { id }: SoakTenant): Version[] {
  return rows
    .filter(
      ({ pk, sk }) =>
        pk === historyPartition(tenantPartition(id)) && String(sk).startsWith(`${stepKey}#`),
    )
    .map(({ version, value }) => ({ version: Number(version), value }))
    .sort((a, b) => a.version - b.version);
}

/** Longer than a process caches a value. */
const patienceMs = 60_000;

/** Each process reads the last value once its cached rows are too old. */
export async function checkReaders(
  hosts: readonly Host[],
  last: ReadonlyMap<SoakTenant, unknown>,
  findings: Findings,
): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  for (const host of hosts)
    for (const [{ tokens, id }, value] of last) {
      const headers = { authorization: `Bearer ${tokens[0]}` };
      for (;;) {
        const { body } = await host.send({ method: "GET", path: "/preferences", headers });
        if (body.includes(`"step":${value},`)) break;
        if (performance.now() > untilMs) {
          findings.add(
            "each process that is running reads the last configuration",
            `${host.kind}, ${id}: ${body}, where ${value} is stored`,
          );
          break;
        }
        await sleep(100);
      }
    }
}
