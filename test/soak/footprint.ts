import { readdirSync, readlinkSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { countListeners } from "./listeners.ts";

/** Resources that a process holds. */
export interface Footprint {
  readonly heapBytes: number;
  /** Active resources of the event loop without sockets: timers, servers, pipes. */
  readonly handles: number;
  readonly sockets: number;
  /** Open descriptors without sockets. 0 without `/proc`. */
  readonly files: number;
  /** Listeners on signals that are alive. */
  readonly listeners: number;
}

/** Collects garbage first. */
export async function measureFootprint(): Promise<Footprint> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // safe: the flag defines it
  for (let turn = 0; turn < 4; turn += 1) {
    collect();
    await nextTurn(); // finalizers run between
  }
  const resources = process.getActiveResourcesInfo();
  const isSocket = (name: string) => name === "TCPSocketWrap";
  return {
    heapBytes: process.memoryUsage().heapUsed,
    handles: resources.filter((name) => !isSocket(name)).length,
    sockets: resources.filter(isSocket).length,
    files: openFiles(),
    listeners: countListeners(),
  };
}

function openFiles(): number {
  try {
    return readdirSync("/proc/self/fd").filter((name) => !targetOf(name).startsWith("socket:"))
      .length;
  } catch {
    return 0;
  }
}

function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return ""; // the descriptor that read the folder
  }
}
