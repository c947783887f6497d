import type { StartedProcess } from "../support/process.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { startLoad, type Tally } from "./clients.ts";

export interface DrainOptions {
  /** Starts an instance. */
  start(): Promise<StartedProcess>;
  /** Whether a balancer stands in front, with a second instance that goes on. */
  readonly balanced: boolean;
  /** How many keep-alive clients. Default 28. */
  readonly clients?: number;
  /** How many requests at least: half of them are sent before the signal. Default 5,000. */
  readonly requests?: number;
  /** The longest wait for the process to end, in milliseconds; then it is killed. */
  readonly limitMs: number;
}

/** What one drain under load came to. */
export interface Drained {
  readonly tally: Readonly<Tally>;
  /** From the signal to the end of the process, in milliseconds. */
  readonly exitMs: number;
  /** The exit code; `undefined` where the process had to be killed. */
  readonly code: number | null | undefined;
}

/** Puts a load on an instance, ends that with SIGTERM, and counts what is lost. */
export async function drain({ start, balanced, clients = 28, requests = 5_000, limitMs }: DrainOptions): Promise<Drained> {
  const processes = await Promise.all(balanced ? [start(), start()] : [start()]);
  const [doomed] = processes as [StartedProcess]; // safe: there is one at least
  const balancer = balanced ? startBalancer() : undefined;
  try {
    const load = startLoad({ clients, next: await targets(balancer, processes), request: workOf });
    await until(() => load.tally.sent >= requests / 2);
    const began = performance.now();
    doomed.child.kill("SIGTERM");
    const exit = await Promise.race([doomed.exited, after(limitMs)]);
    const exitMs = performance.now() - began;
    if (balanced) await until(() => load.tally.sent >= requests);
    else if (exit === undefined) doomed.child.kill("SIGKILL");
    await load.stop();
    return { tally: load.tally, exitMs, code: exit?.code };
  } finally {
    balancer?.stop();
    for (const one of processes) {
      one.child.kill("SIGKILL");
      await one.exited;
    }
  }
}

/** Where requests go: to what the balancer says, or to the only instance until that refuses. */
async function targets(
  balancer: Balancer | undefined,
  processes: readonly StartedProcess[],
): Promise<(tally: Readonly<Tally>) => Promise<number | undefined>> {
  if (balancer === undefined) return async ({ refused }) => (refused > 0 ? undefined : processes[0]?.port);
  for (const { port } of processes) balancer.add(port);
  for (const { port } of processes) await balancer.ready(port);
  return balancer.next;
}

/** Between 5 and 40 ms each; one in a hundred takes 300 ms. */
const workOf = (number: number) => ({ method: "GET", path: `/work/${number % 100 === 99 ? 300 : 5 + ((number * 7) % 36)}` });

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await after(10);
}

const after = (ms: number) => new Promise<undefined>((resolve) => setTimeout(resolve, ms, undefined));
