import fc from "fast-check";
import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { codePoint } from "../../../test/support/code-point.ts";
import { runs } from "../../../test/support/runs.ts";
import type { Logger } from "./logger.ts";
import * as powertoolsThreshold from "./powertools-threshold.ts";
import { createServerLogger, type ServerLoggerOptions } from "./server-logger.ts";

const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678) };
const time = "2026-01-02T03:04:05.678Z";

function logger(options: Partial<ServerLoggerOptions> = {}) {
  const lines: string[] = [];
  const log = createServerLogger({
    environment: "production",
    env: {},
    clock,
    write: (line) => lines.push(line),
    ...options,
  });
  return {
    log,
    lines,
    records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the logger of a server", () => {
  it("is the logger of the specification", () => {
    expectTypeOf(createServerLogger).returns.toExtend<Logger>();
  });

  it("prints each level under its name, with the clock's time", () => {
    const { log, records } = logger({ level: "debug" });
    for (const level of ["debug", "info", "warn", "error"] as const) log[level]("m", { a: 1 });
    expect(records()).toEqual(
      ["debug", "info", "warn", "error"].map((level) => ({ level, msg: "m", a: 1, time })),
    );
  });

  it.each(["_aws", "CloudWatchMetrics"])(
    "never writes %s at the top level of a line, which CloudWatch would read as metrics",
    (name) => {
      const metrics = {
        Timestamp: 1,
        CloudWatchMetrics: [{ Namespace: "n", Metrics: [{ Name: "keelson.wall.hits" }] }],
      };
      const { log, records } = logger();
      log.info("data", { [name]: metrics, "keelson.wall.hits": -1 });
      log
        .child({ [name]: metrics })
        .child({ [name]: "again" })
        .info("context", { [name]: "data" });
      log
        .child({ requestId: "r1" })
        .child({ [name]: "short" })
        .info("short", { [name]: "data" });
      log.info("as data of an instance", Object.assign(new (class Order {})(), { [name]: 1 }));
      // Safe: it is the point to pass what types forbid.
      log.info("of a Map", new Map([[name, 1]]) as never);
      log.info("deeper", { body: { [name]: "kept" } });
      for (const record of records()) expect(record).not.toHaveProperty(name);
      expect(records()).toMatchObject([
        { msg: "data", [`data_${name}`]: metrics, "keelson.wall.hits": -1 },
        { msg: "context", [`context_${name}`]: "again", [`data_${name}`]: "data" },
        { msg: "short", requestId: "r1", [`context_${name}`]: "short", [`data_${name}`]: "data" },
        { [`data_${name}`]: 1 },
        { data: { [name]: 1 } },
        { body: { [name]: "kept" } },
      ]);
    },
  );

  it("follows the clock", () => {
    let now = 0;
    const { log, records } = logger({ clock: { now: () => now } });
    log.info("one");
    log.info("two");
    now = 1;
    log.info("three");
    const [first, later] = ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.001Z"];
    expect(records().map((record) => record["time"])).toEqual([first, first, later]);
  });

  it("repeats its time as timestamp in Lambda's JSON log format, which data cannot overwrite", () => {
    const { log, lines } = logger({ env: { AWS_LAMBDA_LOG_FORMAT: "JSON" } });
    log.error("m", { timestamp: "mine" });
    expect(lines).toEqual([
      `{"level":"error","msg":"m","data_timestamp":"mine","time":"${time}","timestamp":"${time}"}`,
    ]);
    const plain = logger({ env: { AWS_LAMBDA_LOG_FORMAT: "Text" } });
    plain.log.info("m", { timestamp: "mine" });
    expect(plain.lines).toEqual([`{"level":"info","msg":"m","timestamp":"mine","time":"${time}"}`]);
  });

  it("prints nothing below its level, children included, and does not read the data", () => {
    const { log, lines } = logger();
    const data = Object.defineProperty({}, "a", {
      enumerable: true,
      get: () => expect.unreachable(),
    });
    log.debug("hidden", data);
    log.child({ a: 1 }).debug("hidden", data);
    expect(lines).toEqual([]);
  });

  it("reports an unknown LOG_LEVEL once, in a line, at any level", () => {
    const { log, records } = logger({ level: "error", env: { LOG_LEVEL: "verbose\n" } });
    log.warn("hidden");
    expect(records()).toMatchObject([
      { level: "warn", msg: "log.level_unknown", variable: "LOG_LEVEL", value: "verbose", time },
    ]);
  });

  it("works as plain functions, detached from the logger", () => {
    const { log, records } = logger();
    const { warn, child } = log.child({ a: 1 });
    warn("one");
    child({ b: 2 }).info("two");
    expect(records()).toMatchObject([
      { a: 1, msg: "one" },
      { a: 1, b: 2, msg: "two" },
    ]);
  });

  it("writes the context of 100,000 children, none of which has written a line", () => {
    const { log, records } = logger();
    let child: Logger = log.child({ first: 1 });
    for (let index = 0; index < 100_000; index += 1) {
      child = child.child({});
      child.debug("hidden");
    }
    child.child({ last: 2 }).info("done");
    child.info("done");
    expect(records()).toMatchObject([{ first: 1, last: 2, msg: "done" }, { first: 1 }]);
  });

  it("samples again with each invocation", () => {
    const { log, lines } = logger({
      env: { POWERTOOLS_LOGGER_SAMPLE_RATE: "0.5" },
      powertoolsThreshold,
    });
    log.refreshSampling();
    lines.length = 0;
    for (let index = 0; index < 100; index += 1) {
      log.refreshSampling();
      log.debug("sampled");
    }
    const sampled = lines.filter((line) => line.includes('"sampled"')).length;
    expect(sampled).toBeGreaterThan(0);
    expect(sampled).toBeLessThan(100);
  });

  it("keeps 200 interleaved requests apart: no line has a foreign key", async () => {
    const { log, records } = logger();
    await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const request = log.child({
          requestId: `r${index}`,
          tenantId: `t${index}`,
          [`only${index}`]: true,
        });
        for (let step = 0; step < 5; step += 1) {
          await new Promise((resolve) => setImmediate(resolve));
          request.child({ step }).info("step", { of: index });
        }
      }),
    );
    expect(records()).toHaveLength(1_000);
    for (const { of: index, step, ...record } of records()) {
      expect(record).toEqual({
        level: "info",
        requestId: `r${index}`,
        tenantId: `t${index}`,
        [`only${index}`]: true,
        msg: "step",
        time,
      });
    }
  });
});

describe("any logged value", () => {
  const raise = () => {
    throw new Error("no");
  };
  /** Every value is within a function, since fast-check looks into values and these throw. */
  const within = (value: unknown) => () => value;
  const hostile = fc.constantFrom(
    ...[
      Object.defineProperty({}, "a", { enumerable: true, get: raise }),
      { toJSON: raise },
      new Proxy({}, { get: raise, ownKeys: raise, getPrototypeOf: raise, has: raise }),
      Object.assign(new Error("boom\n\u001b[2J"), { code: 1n, token: "s3cret" }),
      Symbol("s"),
      raise,
      new Map<unknown, unknown>([["token", "s3cret"]]),
      new Map<unknown, unknown>([[{}, { password: "s3cret" }]]),
      new Set([["authorization", "s3cret"]]),
      new Date(Number.NaN),
      Buffer.from("s3cret"),
      "x".repeat(100_000),
      '\ud800\u2028\u0085\n{"level":"error"}',
      { Password: "s3cret", deep: { secret: ["s3cret"], COOKIE: { a: "s3cret" } } },
      ["Set-Cookie", "s3cret"],
      { pin: "s3cret" },
    ].map(within),
  );
  const plain = fc
    .anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
      withBoxedValues: true,
    })
    .map(within);
  const anything = fc.oneof(
    plain,
    hostile,
    fc
      .dictionary(
        fc.oneof(
          fc.string(),
          fc.constantFrom("level", "msg", "time", "requestId", "__proto__", "data_level", "token"),
        ),
        fc.oneof(plain, hostile),
      )
      .map(
        (members) => () =>
          Object.fromEntries(Object.entries(members).map(([name, value]) => [name, value()])),
      ),
  );
  const msg = fc.oneof(fc.string({ unit: codePoint }), fc.string());

  it("is exactly one line of JSON with the right level, context, msg and time, without a secret, and throws nothing", () => {
    fc.assert(
      fc.property(
        msg,
        anything,
        anything,
        fc.constantFrom("debug", "info", "warn", "error"),
        (msg, given, added, level) => {
          const [data, context] = [given(), added()];
          const { log, lines, records } = logger({
            level: "debug",
            redact: ["pin", "*.pin", "*.*.pin"],
          });
          // Safe: it is the point to pass what types forbid.
          const child = log.child(context as Record<string, unknown>).child({ requestId: "r1" });
          child[level](msg, data as Record<string, unknown>);
          child[level](data as string, data as Record<string, unknown>);
          expect(lines).toHaveLength(2);
          expect(records()[0]).toMatchObject({ level, msg, requestId: "r1", time });
          expect(records()[1]).toMatchObject({
            level,
            msg: expect.any(String),
            requestId: "r1",
            time,
          });
          for (const line of lines) {
            expect(line).not.toContain("s3cret");
            // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
            expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]|\p{Surrogate}/u);
            expect(Buffer.byteLength(line)).toBeLessThan(262_144);
          }
        },
      ),
      { numRuns: runs(500) },
    );
  });

  it("is printed even if the clock fails", () => {
    const { log, records } = logger({ clock: { now: () => Number.NaN } });
    log.info("m".repeat(10_000), { a: 1 });
    // Safe: it is the point to pass what types forbid.
    log.info({} as string);
    expect(records()).toEqual([
      {
        level: "info",
        msg: expect.stringMatching(/^m{8192}\.\.\.\[/),
        time: expect.stringMatching(/^20.*Z$/),
      },
      { level: "info", msg: "object", time: expect.any(String) },
    ]);
  });

  it("causes no failure even if the destination throws", () => {
    const { log } = logger({ write: raise });
    expect(() => log.error("m")).not.toThrow();
  });

  it("may itself log while it is being written", () => {
    const { log, records } = logger();
    log.info("outer", {
      get a() {
        log.info("inner", { b: [1] });
        return 1;
      },
      c: 2,
    });
    expect(records()).toEqual([
      { level: "info", msg: "inner", b: [1], time },
      { level: "info", msg: "outer", a: 1, c: 2, time },
    ]);
  });
});

describe("LOG_FORMAT", () => {
  it("also returns each record as JSON, in any line format", () => {
    const kept: string[] = [];
    const { log, lines } = logger({
      env: { LOG_FORMAT: "pretty" },
      keep: (record) => kept.push(record),
    });
    log.child({ a: 1 }).info("m", { b: 2 });
    log.debug("below the level");
    expect(kept.map((record) => JSON.parse(record) as unknown)).toEqual([
      { level: "info", a: 1, msg: "m", b: 2, time },
    ]);
    expect(lines).toEqual([expect.stringMatching(/INFO {2}m a=1 b=2$/)]);
  });

  it.each(["pretty", " Pretty "])(
    "%j makes lines for people, without color outside a terminal",
    (LOG_FORMAT) => {
      const { log, lines } = logger({ env: { LOG_FORMAT } });
      log.child({ requestId: "r1" }).info("file.created", { id: "f1" });
      expect(lines).toEqual(["03:04:05.678 INFO  file.created requestId=r1 id=f1"]);
    },
  );

  it.each(["json", "", "xml"])("%j makes JSON", (LOG_FORMAT) => {
    const { log, records } = logger({ env: { LOG_FORMAT } });
    log.info("m");
    expect(records()).toEqual([{ level: "info", msg: "m", time }]);
  });

  it.each([
    [true, undefined, true],
    [true, "", true],
    [true, "1", false],
    [false, undefined, false],
  ])(
    "pretty on a terminal: %j, with NO_COLOR %j, has colors: %j",
    (isTerminal, NO_COLOR, hasColours) => {
      const printed: string[] = [];
      const before = Object.getOwnPropertyDescriptor(process.stdout, "isTTY");
      Object.defineProperty(process.stdout, "isTTY", { value: isTerminal, configurable: true });
      vi.spyOn(process.stdout, "write").mockImplementation(
        (text) => printed.push(String(text)) > 0,
      );
      try {
        createServerLogger({
          environment: "production",
          env: { LOG_FORMAT: "pretty", NO_COLOR },
          clock,
        }).info("m");
      } finally {
        if (before === undefined) Reflect.deleteProperty(process.stdout, "isTTY");
        else Object.defineProperty(process.stdout, "isTTY", before);
      }
      expect(printed).toEqual([
        hasColours
          ? "\u001b[2m03:04:05.678\u001b[0m \u001b[32mINFO \u001b[0m m\n"
          : "03:04:05.678 INFO  m\n",
      ]);
    },
  );
});
