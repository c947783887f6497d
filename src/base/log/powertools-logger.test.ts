import { LogFormatter, LogItem, Logger as Powertools } from "@aws-lambda-powertools/logger";
import type {
  ConstructorOptions,
  LogAttributes,
  UnformattedAttributes,
} from "@aws-lambda-powertools/logger/types";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createServerLogger } from "./server-logger.ts";

/** All that Powertools' own console prints, in the order in which it does. */
let printed: string[] = [];
const records = () => printed.map((line) => JSON.parse(line) as Record<string, unknown>);

beforeEach(() => {
  printed = [];
  vi.stubEnv("POWERTOOLS_DEV", "");
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, "write").mockImplementation((text) => printed.push(String(text)) > 0);
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

function logger(options: ConstructorOptions = {}, redact: readonly string[] = []) {
  const powertools = new Powertools({ serviceName: "files", ...options });
  return {
    powertools,
    log: createServerLogger({ environment: "production", env: {}, powertools, redact }),
  };
}

describe("an application's Powertools Logger", () => {
  it("prints in its own format, with its attributes, context, msg and data", () => {
    const { powertools, log } = logger({ persistentKeys: { team: "storage" } });
    powertools.appendKeys({ region: "eu" });
    log
      .child({ requestId: "r1" })
      .warn("file.kept", { id: "f1", size: 3n, at: new Map([["a", 1]]) });
    expect(records()).toMatchObject([
      {
        level: "WARN",
        message: "file.kept",
        service: "files",
        team: "storage",
        region: "eu",
        msg: "file.kept",
        requestId: "r1",
        id: "f1",
        size: "3",
        at: { a: 1 },
      },
    ]);
    expect(records()[0]).toHaveProperty("timestamp");
  });

  it.each(["_aws", "CloudWatchMetrics"])(
    "never receives %s, which CloudWatch would read as metrics",
    (name) => {
      const { log } = logger();
      log
        .child({ [name]: { CloudWatchMetrics: [] } })
        .info("m", { [name]: { CloudWatchMetrics: [{}] } });
      expect(records()[0]).not.toHaveProperty(name);
      expect(records()).toMatchObject([
        {
          [`context_${name}`]: { CloudWatchMetrics: [] },
          [`data_${name}`]: { CloudWatchMetrics: [{}] },
        },
      ]);
    },
  );

  it("keeps its function and persistent attributes: data with these names is renamed", () => {
    const { powertools, log } = logger({ persistentKeys: { team: "storage" } });
    powertools.addContext({
      functionName: "orders",
      awsRequestId: "aws-1",
      memoryLimitInMB: "128",
      invokedFunctionArn: "arn",
    } as never);
    const forged = {
      function_name: "forged",
      xray_trace_id: "forged",
      cold_start: "forged",
      function_request_id: "forged",
    };
    log
      .child({ requestId: "r1" })
      .info("forged", { ...forged, team: "forged", tenant_id: "forged", free: 1 });
    powertools.appendPersistentKeys({ later: "kept" });
    log.info("later", { later: "forged", data_later: 2 });
    expect(records()).toMatchObject([
      {
        function_name: "orders",
        function_request_id: "aws-1",
        team: "storage",
        free: 1,
        data_function_name: "forged",
        data_xray_trace_id: "forged",
        data_cold_start: "forged",
        data_team: "forged",
        data_tenant_id: "forged",
      },
      { later: "kept", data_later: 2, data_data_later: "forged" },
    ]);
    expect(records()[0]?.["xray_trace_id"]).toBeUndefined();
  });

  it("keeps its correlation ID, if its version has one", () => {
    const { powertools, log } = logger();
    log.info("free", { correlation_id: "mine" });
    powertools.setCorrelationId("kept");
    log.info("taken", { correlation_id: "forged" });
    Object.assign(powertools, { getCorrelationId: undefined });
    log.info("older", { correlation_id: "mine" });
    expect(records()).toMatchObject([
      { correlation_id: "mine" },
      { correlation_id: "kept", data_correlation_id: "forged" },
      { correlation_id: "mine" },
    ]);
  });

  it("determines the level, which may change", () => {
    const { powertools, log } = logger({ logLevel: "ERROR" });
    log.warn("hidden");
    powertools.setLogLevel("DEBUG");
    log.debug("shown");
    expect(records()).toMatchObject([{ level: "DEBUG", message: "shown" }]);
  });

  it("is sampled as configured by its owner", () => {
    const { powertools, log } = logger({ logLevel: "INFO", sampleRateValue: 1 });
    expect(powertools.getLevelName()).toBe("DEBUG");
    powertools.setLogLevel("INFO");
    log.refreshSampling();
    log.refreshSampling();
    expect(powertools.getLevelName()).toBe("INFO");
    printed = [];
    powertools.refreshSampleRateCalculation();
    powertools.refreshSampleRateCalculation();
    log.debug("sampled");
    expect(records()).toMatchObject([
      { message: "Setting log level to DEBUG due to sampling rate" },
      { message: "sampled", sampling_rate: 1 },
    ]);
  });

  it("buffers lines below its level within a trace, and writes them when an error is logged", () => {
    const { log } = logger({
      logLevel: "INFO",
      logBufferOptions: { maxBytes: 10_000, bufferAtVerbosity: "DEBUG" },
    });
    log.debug("outside a trace");
    vi.stubEnv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793");
    log.debug("first", { a: 1 });
    log.info("second");
    expect(records()).toMatchObject([{ message: "second" }]);
    log.child({ requestId: "r1" }).error("third");
    expect(records()).toMatchObject([
      { message: "second" },
      { message: "first", a: 1 },
      { message: "third", requestId: "r1" },
    ]);
  });

  it("uses its own formatter", () => {
    class Short extends LogFormatter {
      formatAttributes(attributes: UnformattedAttributes, more: LogAttributes): LogItem {
        return new LogItem({ attributes: { m: attributes.message, ...more } });
      }
    }
    logger({ logFormatter: new Short() }).log.child({ requestId: "r1" }).info("hello", { a: 1 });
    expect(records()).toEqual([{ m: "hello", msg: "hello", requestId: "r1", a: 1 }]);
  });

  it("never receives a reserved name: nothing is lost, and it prints no warning", () => {
    const data = JSON.parse(
      '{"level":1,"message":2,"msg":3,"service":4,"timestamp":5,"sampling_rate":6,"__proto__":{"x":7},"constructor":8}',
    );
    const { log } = logger();
    log.child({ message: "c" }).info("m", data);
    expect(records()).toHaveLength(1);
    expect(records()[0]).toMatchObject({
      message: "m",
      context_message: "c",
      data_level: 1,
      data_message: 2,
      data_msg: 3,
      data_service: 4,
      data_timestamp: 5,
      data_sampling_rate: 6,
      data___proto__: { x: 7 },
      data_constructor: 8,
    });
  });

  it("never receives a secret or a value of unbounded size", () => {
    const { log } = logger({}, ["user.email"]);
    log.info("m", {
      token: "s3cret",
      user: { email: "s3cret" },
      error: Object.assign(new Error("x"), { password: "s3cret" }),
      big: "x".repeat(1e6),
    });
    expect(printed.join("")).not.toContain("s3cret");
    expect(printed.join("").length).toBeLessThan(20_000);
  });

  it("keeps nothing of a request: 200 interleaved children have no foreign key", async () => {
    const { log } = logger();
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const child = log.child({ requestId: `r${index}`, [`only${index}`]: index });
        for (let step = 0; step < 3; step += 1) {
          await Promise.resolve();
          child.info("step", { of: index });
        }
      }),
    );
    expect(records()).toHaveLength(600);
    for (const record of records()) {
      const names = Object.keys(record).filter((name) => name.startsWith("only"));
      expect(names).toEqual([`only${String(record["of"])}`]);
      expect(record["requestId"]).toBe(`r${String(record["of"])}`);
    }
  });

  it("loses no line if it fails: keelson prints the line", () => {
    class Broken extends LogFormatter {
      formatAttributes(): LogItem {
        throw new Error("broken formatter");
      }
    }
    logger({ logFormatter: new Broken() })
      .log.child({ requestId: "r1" })
      .error("still here", { a: 1 });
    expect(records()).toEqual([
      { level: "error", requestId: "r1", msg: "still here", a: 1, time: expect.any(String) },
    ]);
  });

  it("loses no line if its level cannot be read, wherever lines go", () => {
    vi.stubEnv("AWS_LAMBDA_MAX_CONCURRENCY", "4");
    const broken = {
      ...console,
      getPersistentLogAttributes: () => ({}),
      get level(): number {
        throw new Error("no store");
      },
    };
    const lines: string[] = [];
    createServerLogger({
      environment: "production",
      env: {},
      powertools: broken,
      write: (line) => lines.push(line),
    }).info("here");
    createServerLogger({ environment: "production", env: {}, powertools: broken }).info("there");
    expect([...lines, ...printed].map((line) => JSON.parse(line))).toMatchObject([
      { msg: "here" },
      { msg: "there" },
    ]);
  });

  it("provides only level and persistent attributes if lines have a destination of their own", () => {
    const lines: string[] = [];
    const powertools = new Powertools({ logLevel: "WARN", persistentKeys: { team: "storage" } });
    const log = createServerLogger({
      environment: "production",
      env: { LOG_LEVEL: "debug" },
      powertools,
      write: (line) => lines.push(line),
    });
    log.info("hidden");
    log.child({ requestId: "r1" }).warn("shown");
    log.refreshSampling();
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { level: "warn", team: "storage", requestId: "r1", msg: "shown", time: expect.any(String) },
    ]);
    expect(printed).toEqual([]);
  });
});
