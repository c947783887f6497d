import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRecordRules, recordFields, recordLimits, recordText } from "./log-record.ts";
import { createRedaction } from "./redaction.ts";
import { LogContext } from "./server-logger.ts";

const rules = createRecordRules(createRedaction(["deep.pin"]), new Set(["level", "msg", "time"]));
const outside = new LogContext(rules);
const time = "2026-01-02T03:04:05.678Z";
const line = (msg: unknown, data?: unknown, context = outside) =>
  recordText("info", context, msg, data, `"time":"${time}"`, rules);
const record = (msg: unknown, data?: unknown, context = outside): unknown =>
  JSON.parse(line(msg, data, context));
const raise = (): never => {
  throw new Error("no");
};
const hostile = new Proxy({}, { get: raise, ownKeys: raise, getPrototypeOf: raise, has: raise });

describe("a record", () => {
  it("has level, context, msg, data and time, in this order", () => {
    const context = outside.child({ requestId: "r1", tenantId: "acme" });
    expect(line("file.created", { id: "f1", sizeMb: 2 }, context)).toBe(
      `{"level":"info","requestId":"r1","tenantId":"acme","msg":"file.created","id":"f1","sizeMb":2,"time":"${time}"}`,
    );
    expect(line("bare")).toBe(`{"level":"info","msg":"bare","time":"${time}"}`);
    expect(line("nothing set", { a: undefined })).toBe(
      `{"level":"info","msg":"nothing set","time":"${time}"}`,
    );
  });

  it("keeps empty strings, null and false", () => {
    expect(record("m", { a: "", b: null, c: false, d: 0 })).toMatchObject({
      a: "",
      b: null,
      c: false,
      d: 0,
    });
  });

  it("lets data overwrite neither level, msg, time nor context, and loses none of the data", () => {
    const context = outside.child({ requestId: "r1", data_requestId: "mine" });
    const data = {
      level: "error",
      msg: "forged",
      time: 0,
      requestId: "r2",
      data_level: 1,
      data_data_level: 2,
      data_msg: 3,
    };
    expect(record("real", data, context)).toEqual({
      level: "info",
      requestId: "r1",
      data_requestId: "mine",
      msg: "real",
      data_data_data_level: "error",
      data_data_msg: "forged",
      data_time: 0,
      data_data_requestId: "r2",
      data_level: 1,
      data_data_level: 2,
      data_msg: 3,
      time,
    });
  });

  it("gives two colliding names two different names", () => {
    const context = outside.child({ data_level: "c" });
    expect(record("m", { level: 1, data_level: 2 }, context)).toEqual({
      level: "info",
      data_level: "c",
      msg: "m",
      data_data_level: 1,
      data_data_data_level: 2,
      time,
    });
  });

  it("redacts by the original name of the data, not the new one", () => {
    const context = outside.child({ token: "s3cret", deep: { pin: 1, kept: 2 } });
    expect(record("m", { token: "s3cret", deep: { pin: 1 } }, context)).toEqual({
      level: "info",
      token: "[redacted]",
      deep: { pin: "[redacted]", kept: 2 },
      msg: "m",
      data_token: "[redacted]",
      data_deep: { pin: "[redacted]" },
      time,
    });
  });

  it("marks data that contains itself", () => {
    const data: Record<string, unknown> = { a: 1 };
    data["self"] = data;
    expect(record("m", data)).toMatchObject({ a: 1, self: "[circular]" });
  });

  it("cuts a message of a megabyte, and each of many fields, and stays below 256 KiB", () => {
    const worst = "\u0080".repeat(1_048_576);
    const context = outside.child(
      Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`c${index}`, worst])),
    );
    for (const text of [worst, "\u0000".repeat(1_048_576), "東".repeat(1_048_576)]) {
      const wide = line(
        text,
        Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`d${index}`, text])),
        context,
      );
      expect(Buffer.byteLength(wide)).toBeLessThan(262_144);
      expect(JSON.parse(wide)).toMatchObject({
        time,
        msg: expect.stringContaining("characters cut]"),
      });
    }
    expect(record("x".repeat(recordLimits.msgLength))).toMatchObject({
      msg: "x".repeat(recordLimits.msgLength),
    });
  });
});

describe("values from plain JavaScript", () => {
  class Order {
    id = 7;
  }
  it.each<[string, unknown, unknown]>([
    ["nothing", undefined, {}],
    ["null", null, {}],
    ["a string", "text", { data: "text" }],
    ["a number", 3, { data: 3 }],
    ["a list", [1, 2], { data: [1, 2] }],
    ["a Map", new Map([["a", 1]]), { data: { a: 1 } }],
    ["a date", new Date(time), { data: time }],
    ["an invalid date", new Date(Number.NaN), { data: "[invalid date]" }],
    ["bytes", new DataView(new ArrayBuffer(2)), { data: "[DataView, 2 bytes]" }],
    ["a boxed number", Object(3), { data: 3 }],
    [
      "an instance with a text of its own",
      new URL("https://a.example/"),
      { data: "https://a.example/" },
    ],
    ["an instance", new Order(), { id: 7 }],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    [
      "an error",
      new RangeError("boom"),
      { error: expect.objectContaining({ name: "RangeError", message: "boom" }) },
    ],
    ["a Proxy that throws on everything", hostile, { data: "[unreadable]" }],
  ])("as data: %s", (_name, data, expected) => {
    expect(record("m", data)).toEqual({ level: "info", msg: "m", time, ...(expected as object) });
  });

  it.each<[string, unknown, string]>([
    ["nothing", undefined, ""],
    ["null", null, "null"],
    ["a number", 3, "3"],
    ["a symbol", Symbol("s"), "Symbol(s)"],
    ["an object, redacted", { a: 1, token: "s3cret" }, '{"a":1,"token":"[redacted]"}'],
    ["an object that cannot become text", Object.create(null), "{}"],
    ["a Proxy that throws on everything", hostile, '"[unreadable]"'],
  ])("as message: %s", (_name, msg, expected) => {
    expect(record(msg)).toEqual({ level: "info", msg: expected, time });
  });

  it("include an error as the message: its text is msg, and the error a field", () => {
    const error = new TypeError("boom");
    const shown = expect.objectContaining({
      name: "TypeError",
      message: "boom",
      stack: error.stack,
    });
    expect(record(error)).toEqual({ level: "info", msg: "boom", error: shown, time });
    expect(record(error, { error: "own" })).toEqual({
      level: "info",
      msg: "boom",
      error: "own",
      data_msg: shown,
      time,
    });
    expect(record(Object.assign(new Error("x"), { message: 5 }))).toMatchObject({
      msg: expect.stringContaining('"message":5'),
    });
  });
});

describe("recordFields", () => {
  it("returns the same record as values", () => {
    const context = outside.child({ requestId: "r1" });
    expect(recordFields(context, "m", { token: 1, n: 1n }, rules)).toEqual({
      requestId: "r1",
      msg: "m",
      token: "[redacted]",
      n: "1",
    });
  });
});

describe("plain data", () => {
  const reserved = new Set(["level", "msg", "time"]);
  const context = (paths: readonly string[]) => {
    const rules = createRecordRules(createRedaction(paths), reserved);
    const context = new LogContext(rules).child({ requestId: "r1" });
    return (data: unknown) => recordText("info", context, "m", data, '"time":"t"', rules);
  };

  it("is written as by a walk, for any values", () => {
    const names = fc.oneof(
      fc.constantFrom(
        "id",
        "plan",
        "requestId",
        "msg",
        "token",
        "apiKey",
        "value",
        "Value",
        "name",
        "data_msg",
        "__proto__",
      ),
      fc.string(),
    );
    const values = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.constantFrom("x".repeat(257), "x".repeat(9_000), "\n".repeat(8_200)),
      fc.double(),
      fc.boolean(),
      fc.constantFrom(null, undefined, "authorization", -0, 1n, new Date(0), [1], { a: 1 }),
    );
    fc.assert(
      fc.property(fc.dictionary(names, values, { maxKeys: 30 }), (data) => {
        expect(context([])(data)).toBe(context(["no.such.path"])(data));
      }),
      { examples: [[{ id: undefined, other: "1" }], [{ id: "x".repeat(300) }]] },
    );
  });

  it.each([190, 191, 192, 193, 201, 250])(
    "is written as by a walk up to the limit of a line: %i fields",
    (count) => {
      for (const value of ["x".repeat(250), "é".repeat(255), 1, null]) {
        const data = Object.fromEntries(Array.from({ length: count }, (_, n) => [`f${n}`, value]));
        expect(context([])(data)).toBe(context(["no.such.path"])(data));
      }
    },
  );

  it("shows data that contains itself", () => {
    const data: Record<string, unknown> = { id: 1 };
    data["own"] = data;
    expect(context([])(data)).toBe(context(["no.such.path"])(data));
  });

  it("may have unreadable members", () => {
    const data = {
      id: "f1",
      get broken() {
        return raise();
      },
    };
    expect(JSON.parse(context([])(data))).toMatchObject({ id: "f1", broken: "[unreadable]" });
  });

  it("is bounded and redacted with a cached message too", () => {
    const write = context([]);
    for (const msg of [1, 2])
      expect(write({ password: "p", id: "x".repeat(9_000), n: msg })).not.toContain(
        "x".repeat(8_500),
      );
  });
});

it("writes a message the same way at first and later, even one that is too long or too rare to cache", () => {
  for (const msg of ["file.read", 'a "quoted" one', "line\u2028end", "x".repeat(100)]) {
    expect(line(msg)).toBe(line(msg));
    expect(record(msg)).toMatchObject({ msg });
  }
  for (let i = 0; i < 500; i += 1)
    expect(record(`message ${i}`)).toMatchObject({ msg: `message ${i}` });
});
