import { parseArgs } from "node:util";
import type { Finding } from "../doctor/diagnose.ts";
import type { Status } from "../doctor/outcome.ts";
import type { CommandContext } from "../setup/command-context.ts";
import { onItsStack } from "../setup/embedded-stack.ts";
import { loadServer } from "../setup/load-server.ts";
import { oneLine } from "../setup/one-line.ts";
import { runCommand, UsageError } from "../setup/run-command.ts";

export const doctorUsage = `Usage: keelson doctor <module> [options]

Checks everything that a server needs: tables, parameters, key ring, queues, bus, credentials, clock.
Prints each problem with the commands that fix it. It changes nothing and prints no secrets.

  <module>                    exports the result of buildServer as \`server\`; it must not start anything

Options:
  --timeout-seconds <n>       limit per check (default: 5)
  --json                      print one JSON document
  --help                      print this text

Region, credentials, endpoints and names come from the environment: run it with the server's variables.
Exit codes: 0 nothing failed, 1 a check failed, 2 wrong usage.`;

/**
 * Runs `keelson doctor` and returns its exit code: 0, 1 if a check failed, 2 if its usage was
 * wrong.
 */
export function runDoctorCommand(
  args: readonly string[],
  context: CommandContext,
): Promise<number> {
  return runCommand(
    { usage: doctorUsage, parse, run: (values, module) => examine(values, module, context) },
    args,
    context,
  );
}

async function examine(
  { "timeout-seconds": seconds, json }: ReturnType<typeof parse>["values"],
  module: string | undefined,
  context: CommandContext,
): Promise<number> {
  if (module === undefined) throw new UsageError("no module is given; use keelson doctor <module>");
  if (!/^[1-9]\d{0,2}$/.test(seconds)) {
    throw new UsageError(
      `--timeout-seconds ${JSON.stringify(seconds)} is not a whole number from 1 to 999`,
    );
  }
  const server = await loadServer(module);
  // Loaded lazily: a usage error does not need AWS code.
  const { diagnose } = await import("../doctor/diagnose.ts");
  const findings = await onItsStack(context, server, ({ env, clock }) =>
    diagnose(server, { env, clock, timeoutMs: Number(seconds) * 1_000 }),
  );
  for (const line of json ? [asJson(findings)] : asLines(findings)) context.print(line);
  return findings.some(({ status }) => status === "fail") ? 1 : 0;
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      "timeout-seconds": { type: "string", default: "5" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
}

const shownStatus: Readonly<Record<Status, string>> = {
  ok: "ok  ",
  warn: "warn",
  fail: "fail",
  skip: "skip",
};

function asLines(findings: readonly Finding[]): string[] {
  const lines = findings.flatMap(({ name, status, message, fix }) => [
    `${shownStatus[status]}  ${oneLine(name)}: ${oneLine(message)}`,
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
