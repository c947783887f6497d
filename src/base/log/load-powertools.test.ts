import { afterEach, expect, test, vi } from "vitest";
import { loadPowertools } from "./load-powertools.ts";
import * as loaded from "./powertools-threshold.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

test("loads Powertools if the server or the process sets one of its variables", async () => {
  expect(await loadPowertools({ LOG_LEVEL: "debug" })).toBeUndefined();
  expect(await loadPowertools({ POWERTOOLS_LOGGER_SAMPLE_RATE: "0.5" })).toBe(loaded);
  vi.stubEnv("POWERTOOLS_DEV", "true");
  expect(await loadPowertools({})).toBe(loaded);
});

test("loads Powertools if invocations share a process, or the process has another platform's level", async () => {
  expect(await loadPowertools({ AWS_LAMBDA_MAX_CONCURRENCY: "4" })).toBe(loaded);
  vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
  expect(await loadPowertools({})).toBe(loaded);
  expect(await loadPowertools({ AWS_LAMBDA_LOG_LEVEL: "WARN" })).toBeUndefined();
});
