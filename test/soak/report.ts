import { checks, type Findings } from "./findings.ts";

/** The checks in the form of vitest's JSON reporter, as far as `.ci/run` reads it: each is a test. */
export function reportOf(findings: Findings) {
  const results = checks.map((check) => {
    const { count, first } = findings.of(check);
    const failureMessages = count === 0 ? [] : [`${count} times: ${first.join("\n")}`];
    return { fullName: check, status: count === 0 ? "passed" : "failed", failureMessages };
  });
  const failed = results.filter(({ status }) => status === "failed").length;
  return {
    numTotalTests: results.length,
    numPassedTests: results.length - failed,
    numFailedTests: failed,
    numPendingTests: 0,
    success: failed === 0,
    testResults: [{ name: "test/soak", assertionResults: results }],
  };
}
