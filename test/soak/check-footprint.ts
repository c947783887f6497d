import { setTimeout as sleep } from "node:timers/promises";
import type { Findings } from "./findings.ts";
import type { Footprint } from "./footprint.ts";
import type { Host } from "./host.ts";

/**
 * By how much a footprint may have grown. V8 keeps compiled code of frequent calls, and pools of connections
 * follow the number of concurrent calls.
 */
export const tolerance: Footprint = {
  heapBytes: 6_000_000,
  handles: 6,
  sockets: 6,
  files: 4,
  listeners: 20,
};

const checks = {
  heapBytes: "processes that survived have given back their memory",
  handles: "processes that survived have given back their handles",
  sockets: "processes that survived have given back their sockets",
  files: "processes that survived have given back their files",
  listeners: "processes that survived have given back their listeners",
} as const;

const members = ["heapBytes", "handles", "sockets", "files", "listeners"] as const;

/** Enough for idle connections to close. */
const patienceMs = 60_000;

export async function footprintOf(host: Host): Promise<Footprint> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await host.send({ method: "GET", path: "/footprint", headers: {} });
    if (answer.status === 200) return JSON.parse(answer.body) as Footprint; // safe: our own handler's
    if (attempt === 20) throw new Error(`no footprint: ${answer.status} ${answer.text}`);
  }
}

/** Compares a process with its start, until it is as small again or patience ends. @returns a line for the report. */
export async function checkFootprint(
  name: string,
  host: Host,
  start: Footprint,
  findings: Findings,
): Promise<string> {
  const untilMs = performance.now() + patienceMs;
  for (;;) {
    const now = await footprintOf(host);
    const grown = members.filter((member) => now[member] > start[member] + tolerance[member]);
    if (grown.length > 0 && performance.now() < untilMs) {
      await sleep(500);
      continue;
    }
    for (const member of grown)
      findings.add(
        checks[member],
        `${name}: ${start[member]} at its start, ${now[member]} at its end`,
      );
    return `${name}: ${members.map((member) => `${member} ${start[member]} -> ${now[member]}`).join(", ")}`;
  }
}
