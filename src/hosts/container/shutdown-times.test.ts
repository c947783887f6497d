import { expect, test } from "vitest";
import { createServerLogger } from "../../base/log/server-logger.ts";
import type { Environment } from "../../base/process/environment.ts";
import { shutdownTimes, warnOfPlatform } from "./shutdown-times.ts";

function placeIn(environment: Environment, { variables = {} } = {}) {
  const lines: unknown[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createServerLogger({ environment: "production", env: {}, write });
  return { runtime: { environment, variables, log }, lines };
}

test("a process that restarts on changes does not linger", () => {
  const variables = { KEELSON_WATCH: "1" };
  expect(shutdownTimes(placeIn("production", { variables }).runtime).lingerMs).toBe(3_000);
  expect(shutdownTimes(placeIn("production").runtime, { lingerMs: 5 }).lingerMs).toBe(5);
  const { runtime } = placeIn("development", { variables });
  expect(shutdownTimes(runtime, { lingerMs: 5, drainMs: 7 })).toEqual({
    lingerMs: 0,
    drainMs: 7,
    totalMs: 40_000,
  });
});

test("production is warned of a shutdown that is longer than platforms wait", () => {
  const { runtime, lines } = placeIn("production");
  warnOfPlatform(runtime, { totalMs: 30_000 });
  warnOfPlatform(placeIn("development").runtime);
  expect(lines).toEqual([]);
  warnOfPlatform(runtime);
  expect(lines).toMatchObject([{ msg: "shutdown.platform_limit", totalMs: 40_000 }]);
});

const variables = { AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" };

test("a Web Function ends within the second that Lambda gives it", () => {
  const { runtime } = placeIn("production", { variables });
  expect(shutdownTimes(runtime)).toEqual({ lingerMs: 0, drainMs: 600, totalMs: 900 });
  expect(shutdownTimes(runtime, { drainMs: 400 })).toMatchObject({ drainMs: 400, totalMs: 900 });
});

test.each(["development", "production"] as const)(
  "a Web Function in %s is warned of a shutdown that takes longer",
  (environment) => {
    const { runtime, lines } = placeIn(environment, { variables });
    warnOfPlatform(runtime);
    warnOfPlatform(runtime, { totalMs: 1_000 });
    expect(lines).toEqual([]);
    warnOfPlatform(runtime, { totalMs: 40_000 });
    expect(lines).toMatchObject([
      {
        msg: "shutdown.platform_limit",
        totalMs: 40_000,
        fix: expect.stringContaining("at most 1000"),
      },
    ]);
  },
);
