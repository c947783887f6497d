// own process: modules read once what Lambda's runtime gives them
import { LogLevelThreshold, Logger as Powertools } from "@aws-lambda-powertools/logger";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isLeftToPowertools, loadPowertools } from "./load-powertools.ts";
import { createThreshold, type ThresholdOptions } from "./log-threshold.ts";
import { levelNumbers, powertoolsNumbers } from "./logger.ts";
import * as loaded from "./powertools-threshold.ts";

type Said = [level: string, msg: string, data?: Record<string, unknown> | undefined];

function threshold(options: Partial<ThresholdOptions>) {
  const said: Said[] = [];
  const powertools = isLeftToPowertools(options.env ?? {}) ? loaded : undefined;
  const made = createThreshold(
    { environment: "production", env: {}, powertools, ...options },
    (...notice) => said.push(notice),
  );
  return Object.assign(made, { said });
}
const { debug, info, warn, error } = levelNumbers;

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("the numbers of levels", () => {
  it("match those of Powertools", () => {
    expect(powertoolsNumbers).toEqual(LogLevelThreshold);
    for (const level of ["debug", "info", "warn", "error"] as const) {
      expect(new Powertools({ logLevel: level }).level).toBe(levelNumbers[level]);
    }
  });
});

describe("the level", () => {
  it.each([
    ["development", debug],
    ["test", info],
    ["production", info],
  ] as const)("defaults to that of %s", (environment, level) => {
    expect(threshold({ environment }).current).toBe(level);
  });

  it("is the application's in any environment", () => {
    for (const environment of ["development", "production"] as const) {
      expect(threshold({ environment, level: "warn" }).current).toBe(warn);
    }
  });

  it.each([
    ["debug", debug],
    ["DEBUG", debug],
    ["Error", error],
    [" warn ", warn],
    ["silent", 28],
    ["trace", 6],
  ])("is LOG_LEVEL=%s before all else, in any case", (LOG_LEVEL, level) => {
    const made = threshold({ level: "info", env: { LOG_LEVEL, POWERTOOLS_LOG_LEVEL: "INFO" } });
    expect(made.current).toBe(level);
    expect(made.said).toEqual([]);
  });

  it("is POWERTOOLS_LOG_LEVEL if LOG_LEVEL is unset or empty", () => {
    expect(threshold({ env: { POWERTOOLS_LOG_LEVEL: "warn" } }).current).toBe(warn);
    expect(threshold({ env: { LOG_LEVEL: "", POWERTOOLS_LOG_LEVEL: "warn" } }).current).toBe(warn);
  });

  it("ignores an invalid LOG_LEVEL, with one notice that names it", () => {
    const made = threshold({ level: "error", env: { LOG_LEVEL: "verbose" } });
    expect(made.current).toBe(error);
    expect(made.said).toEqual([
      [
        "warn",
        "log.level_unknown",
        { variable: "LOG_LEVEL", value: "verbose", known: expect.stringContaining("debug, info") },
      ],
    ]);
    for (const value of ["constructor", "__proto__"])
      expect(threshold({ env: { LOG_LEVEL: value } }).said).toHaveLength(1);
  });
});

describe("the platform's AWS_LAMBDA_LOG_LEVEL", () => {
  it.each([
    ["DEBUG", debug],
    ["WARN", warn],
    ["FATAL", 24],
    [" ERROR ", error],
  ])(
    "%s decides if no variable does, before the application's level",
    (AWS_LAMBDA_LOG_LEVEL, level) => {
      expect(threshold({ level: "info", env: { AWS_LAMBDA_LOG_LEVEL } }).current).toBe(level);
    },
  );

  it.each(["warn", "LOUD", ""])(
    "is ignored if it is %j, as in Powertools",
    (AWS_LAMBDA_LOG_LEVEL) => {
      expect(threshold({ level: "debug", env: { AWS_LAMBDA_LOG_LEVEL } })).toMatchObject({
        said: [],
      });
      expect(threshold({ level: "debug", env: { AWS_LAMBDA_LOG_LEVEL } }).current).toBe(debug);
    },
  );

  it("is a floor for LOG_LEVEL, with a notice about missing lines", () => {
    const below = threshold({ env: { AWS_LAMBDA_LOG_LEVEL: "WARN", LOG_LEVEL: "debug" } });
    expect(below.current).toBe(warn);
    expect(below.said).toEqual([
      [
        "warn",
        "log.level_below_platform",
        { LOG_LEVEL: "DEBUG", AWS_LAMBDA_LOG_LEVEL: "WARN", used: "WARN" },
      ],
    ]);
    const above = threshold({ env: { AWS_LAMBDA_LOG_LEVEL: "INFO", LOG_LEVEL: "error" } });
    expect(above.current).toBe(error);
    expect(above.said).toEqual([]);
  });

  it("has the same effect if Powertools also finds it in the process", () => {
    vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
    for (const LOG_LEVEL of [undefined, "debug", "error"]) {
      const made = threshold({ env: { AWS_LAMBDA_LOG_LEVEL: "WARN", LOG_LEVEL } });
      expect(made.current).toBe(LOG_LEVEL === "error" ? error : warn);
    }
  });

  it("appears as Powertools' own warning if only the process has it", () => {
    vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
    const made = threshold({ level: "debug" });
    expect(made.current).toBe(warn);
    expect(made.said).toEqual([
      ["warn", expect.stringContaining("does not match AWS Lambda Advanced Logging Controls")],
    ]);
    vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "ERROR");
    expect(threshold({ level: "debug" }).said).toEqual([]);
  });
});

it("creates no Powertools Logger without a reason", () => {
  // Safe: private is it for TypeScript alone.
  const made = vi.spyOn(Powertools.prototype as unknown as { setConsole(): void }, "setConsole");
  threshold({ env: { LOG_LEVEL: "debug", AWS_LAMBDA_FUNCTION_NAME: "files" } }).refreshSampling();
  expect(made).not.toHaveBeenCalled();
  threshold({ env: { POWERTOOLS_LOGGER_SAMPLE_RATE: "0" } });
  expect(made).toHaveBeenCalledOnce();
  made.mockRestore();
});

it("a refresh changes nothing without sampling", () => {
  const made = threshold({ env: { POWERTOOLS_LOG_LEVEL: "warn" } });
  made.refreshSampling();
  made.refreshSampling();
  expect(made.current).toBe(warn);
});

describe("sampling", () => {
  const always = { POWERTOOLS_LOGGER_SAMPLE_RATE: "1" };

  it("writes debug lines if this process is sampled, and says so in a line", () => {
    const made = threshold({ env: always });
    expect(made.current).toBe(debug);
    expect(made.said).toEqual([["debug", "Setting log level to DEBUG due to sampling rate"]]);
  });

  it.each(["0", "", "2", "-1", "often"])(
    "does not happen at a rate of %j",
    (POWERTOOLS_LOGGER_SAMPLE_RATE) => {
      expect(threshold({ env: { POWERTOOLS_LOGGER_SAMPLE_RATE } }).current).toBe(info);
    },
  );

  it("does not happen if the platform sets the level, as in Powertools", () => {
    const made = threshold({ env: { ...always, AWS_LAMBDA_LOG_LEVEL: "INFO" } });
    made.refreshSampling();
    made.refreshSampling();
    expect(made.current).toBe(info);
    expect(made.said).toEqual([]);
  });

  it("is decided again from the second refresh on", () => {
    const made = threshold({ env: { POWERTOOLS_LOGGER_SAMPLE_RATE: "0.5" } });
    const seen = new Set<number>();
    made.refreshSampling();
    for (let index = 0; index < 200; index += 1) {
      made.refreshSampling();
      seen.add(made.current);
    }
    expect([...seen].sort()).toEqual([info, debug].sort());
  });

  it("takes the level from the invocation if one process runs several at once", () => {
    const store = new Map<symbol, unknown>();
    vi.stubEnv("AWS_LAMBDA_MAX_CONCURRENCY", "4");
    vi.stubGlobal("awslambda", {
      InvokeStore: {
        get: (key: symbol) => store.get(key),
        set: store.set.bind(store),
        hasContext: () => true,
      },
    });
    const made = threshold({ env: { ...always, AWS_LAMBDA_MAX_CONCURRENCY: "4" } });
    expect(made.current).toBe(debug);
    store.clear();
    expect(made.current).toBe(info);
    vi.unstubAllGlobals();
  });

  it("throws nothing in a process without invocations", () => {
    vi.stubEnv("AWS_LAMBDA_MAX_CONCURRENCY", "4");
    const made = threshold({
      env: {
        POWERTOOLS_LOGGER_SAMPLE_RATE: "0",
        AWS_LAMBDA_MAX_CONCURRENCY: "4",
        LOG_LEVEL: "warn",
      },
    });
    made.refreshSampling();
    made.refreshSampling();
    expect(made.current).toBe(warn);
    vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
    expect(threshold({ level: "debug" }).said).toHaveLength(1);
  });

  it("fails at creation if Powertools cannot read its variable, and names it", () => {
    vi.stubEnv("POWERTOOLS_LOGGER_SAMPLE_RATE", "often");
    expect(() => threshold({})).toThrow("POWERTOOLS_LOGGER_SAMPLE_RATE");
  });
});

describe("Powertools", () => {
  it("loads Powertools if the server or the process sets one of its variables", async () => {
    expect(await loadPowertools({ LOG_LEVEL: "debug" })).toBeUndefined();
    expect(await loadPowertools({ POWERTOOLS_LOGGER_SAMPLE_RATE: "0.5" })).toBe(loaded);
    vi.stubEnv("POWERTOOLS_DEV", "true");
    expect(await loadPowertools({})).toBe(loaded);
  });

  it("loads Powertools if invocations share a process, or the process has another platform's level", async () => {
    expect(await loadPowertools({ AWS_LAMBDA_MAX_CONCURRENCY: "4" })).toBe(loaded);
    vi.stubEnv("AWS_LAMBDA_LOG_LEVEL", "WARN");
    expect(await loadPowertools({})).toBe(loaded);
    expect(await loadPowertools({ AWS_LAMBDA_LOG_LEVEL: "WARN" })).toBeUndefined();
  });
});
