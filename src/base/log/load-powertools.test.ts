import { afterEach, expect, test, vi } from "vitest";
import { loadPowertools } from "./load-powertools.ts";
import * as loaded from "./powertools-threshold.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

test("Powertools is loaded where one of its variables is set, of the server or of the process", async () => {
  expect(await loadPowertools({ LOG_LEVEL: "debug" })).toBeUndefined();
  expect(await loadPowertools({ POWERTOOLS_LOGGER_SAMPLE_RATE: "0.5" })).toBe(loaded);
  vi.stubEnv("POWERTOOLS_DEV", "true");
  expect(await loadPowertools({})).toBe(loaded);
});

test("Powertools is loaded where invocations share a process, and where the process has another platform's level", async () => {
  expect(await loadPowertools({ AWS_LAMBDA_MAX_CONCURRENCY: "4" })).toBe(loaded);
  vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
  expect(await loadPowertools({})).toBe(loaded);
  expect(await loadPowertools({ AWS_LAMBDA_LOG_LEVEL: "WARN" })).toBeUndefined();
});
