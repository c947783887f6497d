// Drains an instance of keelson under load and prints what was sent, got and lost: `node test/load/main.ts --help`.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildServer } from "../../src/index.ts";
import { startTestApp } from "../../src/tools/testing/index.ts";
import { startProcess } from "../support/process.ts";
import { lostOf } from "./clients.ts";
import { drain, nodeOptions } from "./drain.ts";

const help = `Usage: node test/load/main.ts [options]

Puts clients with keep-alive connections on a process of its own, sends it SIGTERM, and counts what is lost.

  --balanced        a balancer stands in front, with a second instance that goes on
  --runs N          how often (1)
  --clients N       how many clients (28)
  --requests N      how many requests a run at least; half of them before the signal (5000)
  --linger MS       how long requests are accepted after the signal (3000)
  --help            this text

Only this machine is spoken to. The exit code is 1 where a run lost what it may not: anything with a balancer, without
one a request that the process had got. Connections that the kernel had and the process had not are reset as it closes.`;

const { values } = parseArgs({
  options: {
    balanced: { type: "boolean", default: false },
    runs: { type: "string", default: "1" },
    clients: { type: "string", default: "28" },
    requests: { type: "string", default: "5000" },
    linger: { type: "string", default: "3000" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit();
}
const runs = numberOf("runs", 1, 1_000);
const clients = numberOf("clients", 1, 1_000);
const requests = numberOf("requests", 1, 1_000_000);
const lingerMs = numberOf("linger", 0, 60_000);

const app = await startTestApp(buildServer({ features: [] }));
try {
  const totalMs = lingerMs + 37_000;
  const env = {
    ...app.env,
    NODE_ENV: "production",
    SHUTDOWN: JSON.stringify({ lingerMs, totalMs }),
  };
  const fixture = join(import.meta.dirname, "../fixtures/load.ts");
  for (let run = 1; run <= runs; run += 1) {
    const { tally, lostByProcess, exitMs, code } = await drain({
      start: () => startProcess(process.execPath, [...nodeOptions, fixture], env),
      balanced: values.balanced,
      clients,
      requests,
      limitMs: totalMs + 10_000,
    });
    const { sent, got, lost, refused, slowestMs } = tally;
    const reasons = Object.entries(lost).map(([reason, count]) => ` ${reason} ${count}`);
    console.log(
      `run ${run}: sent ${sent}, got ${got}, lost ${lostOf(tally)}${reasons.join("")}, of them ${lostByProcess} by the process, refused ${refused}; exit ${code} after ${exitMs.toFixed(0)} ms, ${(exitMs - lingerMs - slowestMs).toFixed(0)} over linger and the longest request`,
    );
    if ((values.balanced ? lostOf(tally) : lostByProcess) > 0) process.exitCode = 1;
  }
} finally {
  await app.close();
}

function numberOf(
  name: "runs" | "clients" | "requests" | "linger",
  least: number,
  most: number,
): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  console.error(
    `--${name}: ${JSON.stringify(values[name])} is not allowed; use a whole number from ${least} to ${most}`,
  );
  process.exit(2);
}
