import { parseArgs } from "node:util";
import { type DefectName, defectNames, isDefectName } from "./defects.ts";

/** Options of the soak. */
export interface SoakOptions {
  /** Duration of the load, in minutes. */
  readonly minutes: number;
  /** Decides clients' requests, faults, signals and steps of the clock. */
  readonly seed: number;
  /** A file for the report, in the form that vitest's JSON reporter has. */
  readonly report: string | undefined;
  /** An earlier defect that is put back, to see the soak fail. */
  readonly defect: DefectName | undefined;
}

export const help = `Usage: npm run soak -- [options]

Sends a mixed load to the server of test/soak/server.ts, in containers and in Lambda's runtime. Meanwhile configuration
changes, the store throttles and fails, processes get SIGTERM and SIGKILL, and the clock steps. Then it checks that each
write and each event happened exactly once, that no tenant's ID is in a response, line or row of another, that no write of
configuration is lost, and that the processes that survived have given back memory, handles, sockets and files.

Options:
  --minutes N      duration of the load (30)
  --seed N         decides requests, faults, signals and steps of the clock (a random one, which is printed). Processes run
                   in real time, so a seed repeats the decisions, and not their order among processes
  --report FILE    also writes the checks in the form of vitest's JSON reporter
  --defect NAME    puts an earlier defect back, to see the soak fail: ${defectNames.join(", ")}
  --help           this text

Each minute it prints the number of requests and their times: p50, p99 and p99.9. The soak only calls this machine. The first
run installs Lambda's runtime.

Exit codes: 0 all checks passed, 1 a check failed, or the soak could not run, 2 wrong usage.`;

/** @throws UsageError for wrong usage. @returns `undefined` if help is asked for. */
export function readOptions(args: readonly string[]): SoakOptions | undefined {
  const values = parsed(args);
  if (values.help) return undefined;
  const defect = values.defect;
  if (defect !== undefined && !isDefectName(defect))
    throw new UsageError(
      `--defect: ${JSON.stringify(defect)} is unknown; use ${defectNames.join(", ")}`,
    );
  return {
    minutes: numberOf("minutes", values.minutes ?? "30", 0.1, 10_000),
    seed:
      values.seed === undefined
        ? Math.floor(Math.random() * 2 ** 31)
        : numberOf("seed", values.seed, 0, 2 ** 32 - 1),
    report: values.report,
    defect,
  };
}

/** A mistake in the command line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        minutes: { type: "string" },
        seed: { type: "string" },
        report: { type: "string" },
        defect: { type: "string" },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function numberOf(name: "minutes" | "seed", text: string, least: number, most: number): number {
  const number = Number(text);
  const isAllowed = text.trim() !== "" && number >= least && number <= most;
  if (isAllowed && (name === "minutes" || Number.isInteger(number))) return number;
  throw new UsageError(
    `--${name}: ${JSON.stringify(text)} is not allowed; use a ${name === "seed" ? "whole " : ""}number from ${least} to ${most}`,
  );
}
