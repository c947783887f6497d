import { once } from "node:events";
import type { StartedProcess } from "../support/process.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { type Load, lostOf, startLoad, type Tally } from "./clients.ts";

/** Options of an instance. */
export const nodeOptions: readonly string[] = [
  "--import",
  new URL("accepted.ts", import.meta.url).href,
];

export interface DrainOptions {
  /** Starts an instance, with {@link nodeOptions}. */
  start(): Promise<StartedProcess>;
  /** Whether there is a balancer, with a second instance that keeps running. */
  readonly balanced: boolean;
  /** Number of keep-alive clients. Default 28. */
  readonly clients?: number;
  /** The least number of requests; half of them are sent before the signal. Default 5,000. */
  readonly requests?: number;
  /** The longest wait for the process to end, in milliseconds; then it is killed. */
  readonly limitMs: number;
}

/** Result of one drain under load. */
export interface Drained {
  readonly tally: Readonly<Tally>;
  /**
   * Number of requests that were lost on connections that the process had accepted, or to another instance. The process never had
   * the others: the kernel reset their connections when the listener closed.
   */
  readonly lostByProcess: number;
  /** From the signal to the end of the process, in milliseconds. */
  readonly exitMs: number;
  /** The exit code; `undefined` where the process had to be killed. */
  readonly code: number | null | undefined;
}

/** Puts a load on an instance, ends it with SIGTERM, and counts lost requests. */
export async function drain({
  start,
  balanced,
  clients = 28,
  requests = 5_000,
  limitMs,
}: DrainOptions): Promise<Drained> {
  const processes = await Promise.all(balanced ? [start(), start()] : [start()]);
  const [doomed] = processes as [StartedProcess]; // safe: there is one at least
  const closed = once(doomed.child, "close");
  const balancer = balanced ? startBalancer() : undefined;
  try {
    const load = startLoad({ clients, next: await targets(balancer, processes), request: workOf });
    await until(() => load.tally.sent >= requests / 2);
    const began = performance.now();
    doomed.child.kill("SIGTERM");
    const exit = await Promise.race([doomed.exited, after(limitMs)]);
    const exitMs = performance.now() - began;
    if (balanced) await until(() => load.tally.sent >= requests);
    if (exit === undefined) doomed.child.kill("SIGKILL");
    await load.stop();
    await closed; // it has said all that it says
    return {
      tally: load.tally,
      lostByProcess: lostOf(load.tally) - unaccepted(load, doomed),
      exitMs,
      code: exit?.code,
    };
  } finally {
    balancer?.stop();
    for (const one of processes) {
      one.child.kill("SIGKILL");
      await one.exited;
    }
  }
}

/** Number of requests that were lost on connections that the process never accepted. */
function unaccepted({ connected, lostOn }: Load, { port, logs }: StartedProcess): number {
  const said = logs.find(({ msg }) => msg === "load.accepted");
  if (said === undefined) return 0; // it was killed, so it has lost all of them
  // Safe: `accepted.ts` writes it.
  const accepted = counts(
    (said["ports"] as readonly number[]).map((client) => `${port} ${client}`),
  );
  const made = counts(connected);
  const excess = (
    of: ReadonlyMap<string, number>,
    over: ReadonlyMap<string, number>,
    name: string,
  ) => Math.max(0, (of.get(name) ?? 0) - (over.get(name) ?? 0));
  // A port may have been reused: then one of its connections was not accepted.
  const named = lostOn.filter(
    (name) => name?.startsWith(`${port} `) && excess(made, accepted, name) > 0,
  ).length;
  // Reset while it was connecting, as the client saw it: what the process accepted of these was its own all the same.
  const unnamed = lostOn.filter((name) => name === undefined).length;
  const strangers = [...accepted.keys()].reduce(
    (sum, name) => sum + excess(accepted, made, name),
    0,
  );
  return named + Math.max(0, unnamed - strangers);
}

function counts(names: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const name of names) found.set(name, (found.get(name) ?? 0) + 1);
  return found;
}

/** Target of requests: the balancer's choice, or the only instance until it refuses. */
async function targets(
  balancer: Balancer | undefined,
  processes: readonly StartedProcess[],
): Promise<(tally: Readonly<Tally>) => Promise<number | undefined>> {
  if (balancer === undefined)
    return async ({ refused }) => (refused > 0 ? undefined : processes[0]?.port);
  for (const { port } of processes) balancer.add(port);
  for (const { port } of processes) await balancer.ready(port);
  return balancer.next;
}

/** Between 5 and 40 ms each; one in a hundred takes 300 ms. */
const workOf = (number: number) => ({
  method: "GET",
  path: `/work/${number % 100 === 99 ? 300 : 5 + ((number * 7) % 36)}`,
});

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await after(10);
}

const after = (ms: number) =>
  new Promise<undefined>((resolve) => setTimeout(resolve, ms, undefined));
