import type { Finding } from "../doctor/diagnose.ts";
import type { Status } from "../doctor/outcome.ts";
import {
  defineCommand,
  flag,
  helpOption,
  itsEnvironment,
  moduleArgument,
  moduleOf,
  timeoutMsOf,
} from "../setup/define-command.ts";
import { onItsStack } from "../setup/embedded-stack.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";

export const doctorUsage = `Usage: keelson doctor <module> [options]

Checks everything that a server needs: tables, parameters, key ring, queues, bus, credentials, clock.
Prints each problem with the commands that fix it. It changes nothing and prints no secrets.

${moduleArgument}

Options:
  --timeout-seconds <n>       limit per check (default: 5)
  --json                      print one JSON document
${helpOption}

${itsEnvironment}
Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage.`;

export const run = defineCommand({
  usage: doctorUsage,
  flags: { "timeout-seconds": { type: "string", default: "5" }, json: flag },
  run: async ({ "timeout-seconds": seconds, json }, [given], context) => {
    const module = moduleOf(given, "doctor");
    const timeoutMs = timeoutMsOf(seconds);
    const server = await loadServer(module);
    // Loaded lazily: a usage error does not need AWS code.
    const { diagnose } = await import("../doctor/diagnose.ts");
    const findings = await onItsStack(context, server, ({ env, clock }) =>
      diagnose(server, { env, clock, timeoutMs }),
    );
    for (const line of json ? [asJson(findings)] : asLines(findings)) context.print(line);
    return findings.some(({ status }) => status === "fail") ? 1 : 0;
  },
});

function asLines(findings: readonly Finding[]): string[] {
  const lines = findings.flatMap(({ name, status, message, fix }) => [
    `${status.padEnd(4)}  ${oneLine(name)}: ${oneLine(message)}`,
    ...fix.map((command) => `      $ ${oneLine(command)}`),
  ]);
  const { ok, warn, fail, skip } = count(findings);
  return [
    ...lines,
    `${findings.length} checks: ${ok} ok, ${warn} warn, ${fail} fail, ${skip} not checked`,
  ];
}

function asJson(findings: readonly Finding[]): string {
  return JSON.stringify({ summary: count(findings), checks: findings }, undefined, 2);
}

function count(findings: readonly Finding[]): Record<Status, number> {
  const counts = { ok: 0, warn: 0, fail: 0, skip: 0 };
  for (const { status } of findings) counts[status] += 1;
  return counts;
}
