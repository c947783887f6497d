import { lostOf } from "../test/load/clients.ts";
import { type Drained, drain, nodeOptions } from "../test/load/drain.ts";
import { startProcess } from "../test/support/process.ts";
import { type Result, result } from "./measure.ts";

const runs = 10;
const lingerMs = 3_000;
const limitMs = 60_000;

/**
 * What SIGTERM under load costs: 28 keep-alive clients, 5,000 requests or more a run. Behind a balancer the peer is
 * `node:http` that stops listening at once; without one it is Fastify that closes after the same linger.
 */
export async function drainResults(env: Readonly<Record<string, string>>): Promise<Result[]> {
  const balanced = {
    ours: await drains("ours", true, env),
    peer: await drains("node:http", true, env),
  };
  const alone = {
    ours: await drains("ours", false, env),
    peer: await drains("fastify", false, env),
  };
  return [
    result({
      id: "drain-lost-balancer",
      ours: notServed(balanced.ours),
      peer: notServed(balanced.peer),
      unit: "requests",
    }),
    result({
      id: "drain-resets",
      ours: worst(alone.ours),
      peer: worst(alone.peer),
      unit: "requests",
    }),
    result({
      id: "drain-exit",
      ours: overrun(alone.ours),
      peer: overrun(alone.peer),
      unit: "ms",
    }),
  ];
}

async function drains(
  name: string,
  balanced: boolean,
  env: Readonly<Record<string, string>>,
): Promise<Drained[]> {
  const file = name === "ours" ? "../test/fixtures/load.ts" : "drain-peers.ts";
  const command = [...nodeOptions, new URL(file, import.meta.url).pathname, name, String(lingerMs)];
  const variables = { ...env, NODE_ENV: "production", SHUTDOWN: JSON.stringify({ lingerMs }) };
  const drained: Drained[] = [];
  for (let run = 1; run <= runs; run += 1) {
    const one = await drain({
      start: () => startProcess(process.execPath, command, variables),
      balanced,
      limitMs,
    });
    const { sent, got, refused } = one.tally;
    console.log(
      `${name}${balanced ? ", balanced" : ""}, run ${run}: sent ${sent}, got ${got}, lost ${lostOf(one.tally)} ${JSON.stringify(one.tally.lost)}, ${one.lostByProcess} of them by the process, refused ${refused}, exit ${one.code} after ${Math.round(one.exitMs)} ms, ${overrunOf(one)} over`,
    );
    drained.push(one);
  }
  return drained;
}

/** Behind a balancer a connection that is refused is a request that fails. */
const notServed = (drained: readonly Drained[]) =>
  drained.reduce((sum, { tally }) => sum + lostOf(tally) + tally.refused, 0);
/** Without one, what the kernel had and the process had not is lost whatever the process does: see docs/container.md. */
const worst = (drained: readonly Drained[]) =>
  Math.max(...drained.map(({ lostByProcess }) => lostByProcess));

/** How much longer than the linger and the longest request the end took, in milliseconds, in the worst run. */
const overrun = (drained: readonly Drained[]) => Math.max(0, ...drained.map(overrunOf));
const overrunOf = ({ exitMs, tally }: Drained) => Math.round(exitMs - lingerMs - tally.slowestMs);
