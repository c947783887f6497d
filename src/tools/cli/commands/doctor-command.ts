import type { Finding } from "../doctor/diagnose.ts";
import {
  type CommandContext,
  defineCommand,
  flag,
  itsEnvironment,
  type LineStyle,
  moduleArgument,
  moduleOf,
  oneLine,
  options,
  textOr,
  timeoutMsOf,
} from "../setup/define-command.ts";
import { onItsStack } from "../setup/its-server.ts";
import { loadServer } from "../setup/load-server.ts";

const flags = {
  "timeout-seconds": textOr("5", "<n>", "limit per check"),
  json: flag("print one JSON document"),
};

export const command = defineCommand({
  name: "doctor",
  usage: `Usage: keelson doctor <module> [options]

Checks everything that a server needs: tables, parameters, key ring, queues, bus, credentials, clock.
Prints each problem with the commands that fix it. It is read-only and never prints secrets.

${moduleArgument}

${options(flags)}

${itsEnvironment}
Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage.`,
  flags,
  run: async ({ "timeout-seconds": seconds, json }, [given], context) => {
    const module = moduleOf(given, "doctor");
    const timeoutMs = timeoutMsOf(seconds);
    const server = await loadServer(module);
    // Loaded lazily: a usage error does not need AWS code.
    const { diagnose } = await import("../doctor/diagnose.ts");
    const findings = await onItsStack(context, server, ({ env, clock }) =>
      diagnose(server, { env, clock, timeoutMs }),
    );
    if (json) context.print(asJson(findings));
    else printFindings(findings, context);
    return findings.some(({ status }) => status === "fail") ? 1 : 0;
  },
});

function printFindings(
  findings: readonly Finding[],
  { print }: Pick<CommandContext, "print">,
): void {
  for (const { name, status, message, fix } of findings) {
    print(`${status.padEnd(4)}  ${oneLine(name)}: ${oneLine(message)}`, styles[status]);
    for (const command of fix) print(`      $ ${oneLine(command)}`);
  }
  const { ok, warn, fail, skip } = count(findings);
  print(`${findings.length} checks: ${ok} ok, ${warn} warn, ${fail} fail, ${skip} not checked`);
}

const styles: Readonly<Partial<Record<Finding["status"], LineStyle>>> = {
  warn: "yellow",
  fail: "red",
};

function asJson(findings: readonly Finding[]) {
  return JSON.stringify({ summary: count(findings), checks: findings }, undefined, 2);
}

function count(findings: readonly Finding[]) {
  const counts = { ok: 0, warn: 0, fail: 0, skip: 0 };
  for (const { status } of findings) counts[status] += 1;
  return counts;
}
