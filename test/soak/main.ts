// The soak: `npm run soak -- --help`.
import { writeFileSync } from "node:fs";
import { checks } from "./findings.ts";
import { help, readOptions, UsageError } from "./options.ts";
import { reportOf } from "./report.ts";

const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
const code = await main(process.argv.slice(2));
process.exit(code); // clients of an interrupted soak still wait

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === undefined) {
      console.log(help);
      return 0;
    }
    const { minutes, seed, report, defect } = options;
    console.log(`soak: ${minutes} minutes, seed ${seed}${defect ? `, defect ${defect}` : ""}`);
    const say = (line: string) => console.log(`soak: ${line}`);
    const { runSoak } = await import("./soak.ts"); // --help does not need it
    const findings = await runSoak(options, say, interruption.signal);
    const failed = checks.filter((check) => findings.of(check).count > 0);
    for (const check of failed) {
      const { count, first } = findings.of(check);
      console.log(`soak: FAILED: ${check}: ${count} times\n  ${first.join("\n  ")}`);
    }
    if (report !== undefined) writeFileSync(report, JSON.stringify(reportOf(findings)));
    const passed = checks.length - failed.length;
    console.log(`soak: seed ${seed}: ${passed} checks passed, ${failed.length} failed`);
    return failed.length === 0 ? 0 : 1;
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(`soak: ${isUsage ? error.message : describe(error)}`);
    if (isUsage) console.error("Run `npm run soak -- --help`.");
    return isUsage ? 2 : 1;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
