// own process: it fakes timers
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ClientLogger, createClientLogger } from "./client-logger.ts";
import type { ClientLoggerOptions } from "./options.ts";

interface Sent {
  readonly records: Record<string, unknown>[];
  readonly headers: Record<string, string>;
  readonly keepalive: boolean;
}

let sent: Sent[] = [];
let answers: (Response | Error | Promise<Response>)[] = [];
let listeners: Map<string, Set<(event: object) => void>>;
const visible = { visibilityState: "visible" };
const logs: ClientLogger[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  [sent, answers, listeners] = [[], [], new Map()];
  visible.visibilityState = "visible";
  vi.stubGlobal(
    "fetch",
    async (
      _url: string,
      { body, headers, keepalive }: { body: string } & Omit<Sent, "records">,
    ) => {
      const answer = answers.shift() ?? new Response(null, { status: 202 });
      sent.push({ records: JSON.parse(body) as Record<string, unknown>[], headers, keepalive });
      if (answer instanceof Error) throw answer;
      return answer;
    },
  );
  vi.stubGlobal("document", visible);
  vi.stubGlobal("addEventListener", (type: string, listener: () => void) => {
    listeners.set(type, new Set([...(listeners.get(type) ?? []), listener]));
  });
  vi.stubGlobal("removeEventListener", (type: string, listener: () => void) =>
    listeners.get(type)?.delete(listener),
  );
});
afterEach(async () => {
  for (const log of logs.splice(0)) await log.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const start = (options: Partial<ClientLoggerOptions> = {}) => {
  const log = createClientLogger({ url: "/log", token: "t0", ...options });
  logs.push(log);
  return log;
};
const fire = (type: string, event: object = {}) => {
  for (const listener of listeners.get(type) ?? []) listener(event);
};
const messages = () => sent.flatMap(({ records }) => records.map(({ msg }) => msg));

test("sends queued records as one batch, with context, level and token", async () => {
  const log = start({ context: { release: "7" } });
  log.info("one", { n: 1 });
  log.child({ view: "cart" }).error("two");
  log.debug("below the threshold");
  expect(sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);

  expect(sent).toMatchObject([
    {
      headers: { authorization: "Bearer t0", "content-type": "application/json" },
      records: [
        { level: "info", msg: "one", n: 1, release: "7", clientTime: expect.any(String) },
        { level: "error", msg: "two", view: "cart", release: "7" },
      ],
    },
  ]);
});

test("calls the token function before each batch, and holds records back while it returns none", async () => {
  let token: string | undefined;
  const log = start({ token: async () => token });
  log.info("one");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent).toEqual([]);
  token = "fresh";
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent[0]?.headers["authorization"]).toBe("Bearer fresh");
  token = "fresher";
  log.info("two");
  await log.flush();
  expect(sent[1]?.headers["authorization"]).toBe("Bearer fresher");
});

test("holds records back without throwing when the token function rejects", async () => {
  const log = start({ token: () => Promise.reject(new Error("signed out")) });
  log.info("one");
  await log.flush();
  expect(sent).toEqual([]);
});

test.each([
  ["the network fails", new TypeError("Failed to fetch")],
  ["the server is busy", new Response(null, { status: 503 })],
  ["the token is old", new Response(null, { status: 401 })],
])("when %s, resends the batch in order, with growing pauses", async (_case, answer) => {
  vi.spyOn(Math, "random").mockReturnValue(1);
  const log = start();
  answers = [answer, new Response(null, { status: 500 })];
  log.info("one");
  await vi.advanceTimersByTimeAsync(2_000);
  log.info("two");
  await vi.advanceTimersByTimeAsync(990);
  expect(sent.length).toBe(1);
  await vi.advanceTimersByTimeAsync(10);
  expect(sent.length).toBe(2);
  await vi.advanceTimersByTimeAsync(1_990);
  expect(sent.length).toBe(2);
  await vi.advanceTimersByTimeAsync(10);
  expect(sent.length).toBe(3);
  expect(messages().slice(-2)).toEqual(["one", "two"]);
});

test("waits as long as Retry-After asks, even on pagehide", async () => {
  const log = start();
  answers = [new Response(null, { status: 429, headers: { "retry-after": "30" } })];
  log.info("one");
  await vi.advanceTimersByTimeAsync(31_900);
  fire("pagehide");
  expect(sent.length).toBe(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(sent.length).toBe(2);
});

test.each([
  ["Retry-After", new Response(null, { status: 429, headers: { "retry-after": "30" } }), 29_000],
  ["a pause", new TypeError("offline"), 400],
])("new records do not cut %s short", async (_case, answer, quietMs) => {
  const log = start({ flushAfterMs: 100 });
  let arrive = (_answer: Response | Error) => {};
  answers = [
    new Promise((resolve, reject) => {
      arrive = (given) => (given instanceof Error ? reject(given) : resolve(given));
    }),
  ];
  log.info("one");
  await vi.advanceTimersByTimeAsync(100);
  log.info("while it is under way");
  arrive(answer);
  await vi.advanceTimersByTimeAsync(0);
  log.info("after it failed");
  await vi.advanceTimersByTimeAsync(quietMs);
  expect(sent.length).toBe(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent.map(({ records }) => records.length)).toEqual([1, 3]);
});

test("drops and counts a batch that the server rejects, and sends the next one", async () => {
  const log = start();
  answers = [new Response(null, { status: 422 })];
  log.info("refused");
  await log.flush();
  log.info("next");
  await log.flush();
  expect(sent[1]?.records).toMatchObject([
    { level: "warn", msg: "client_log.dropped", count: 1 },
    { msg: "next" },
  ]);
});

test("a full queue drops its oldest records, and reports how many", async () => {
  const log = start({ maxQueued: 3 });
  for (let n = 1; n <= 5; n++) log.info(`m${n}`);
  await log.flush();
  expect(sent[0]?.records).toMatchObject([
    { msg: "client_log.dropped", count: 2 },
    { msg: "m3" },
    { msg: "m4" },
    { msg: "m5" },
  ]);
});

test("keeps the queue within its bound while the server fails", async () => {
  const log = start({ maxQueued: 3 });
  answers = [new TypeError("offline")];
  for (let n = 1; n <= 3; n++) log.info(`m${n}`);
  const flushed = log.flush();
  log.info("m4");
  await flushed;
  await log.flush();
  expect(sent[1]?.records.map(({ msg, count }) => count ?? msg)).toEqual([1, "m2", "m3", "m4"]);
  for (let n = 0; n < 9; n++) log.info(`n${n}`);
  answers = [new Response(null, { status: 503 }), new Response(null, { status: 202 })];
  await log.flush();
  await log.flush();
  expect(sent.slice(2).map(({ records }) => records[0]?.["count"])).toEqual([6, 6]);
  log.info("last");
  await log.flush();
  expect(sent[4]?.records.map(({ msg }) => msg)).toEqual(["last"]);
});

test("reports a record that throws when read, without throwing itself", async () => {
  const log = start();
  const data = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("no");
      },
    },
  );
  log.error("odd", data);
  log.info(Object.create(null) as never);
  await log.flush();
  expect(messages()).toEqual(["client_log.unreadable", "client_log.unreadable"]);
});

test("limits a batch to a hundred records and 28,000 bytes", async () => {
  const log = start();
  for (let n = 0; n < 150; n++) log.info(`m${n}`);
  await vi.advanceTimersByTimeAsync(0);
  expect(sent.map(({ records }) => records.length)).toEqual([99, 51]);
  for (let n = 0; n < 20; n++) log.info("long", { text: "é".repeat(1_500) });
  await log.flush();
  for (const { records } of sent.slice(2))
    expect(new TextEncoder().encode(JSON.stringify(records)).length).toBeLessThan(28_000);
  expect(messages().length).toBe(170);
});

test("sends queued records when the page is hidden, as much as keepalive allows, and the rest later", async () => {
  const log = start({ flushAfterMs: 60_000 });
  for (let n = 0; n < 60; n++) log.info(`m${n}`, { text: "x".repeat(1_500) });
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  answers = Array.from({ length: 9 }, () =>
    arrived.then(() => new Response(null, { status: 202 })),
  );
  visible.visibilityState = "hidden";
  fire("visibilitychange");
  expect(sent.length).toBeGreaterThan(1);
  expect(sent.every(({ keepalive }) => keepalive)).toBe(true);
  const bytes = sent.reduce(
    (sum, { records }) => sum + new TextEncoder().encode(JSON.stringify(records)).length,
    0,
  );
  expect(bytes).toBeLessThan(64 * 1024);
  expect(messages().length).toBeLessThan(60);
  arrive();
  await log.flush();
  expect(messages().length).toBe(60);
});

test("reports dropped records once, even when the page sends two batches as it is hidden", async () => {
  const log = start({ maxQueued: 20 });
  for (let n = 0; n < 22; n++)
    log.info("long", { text: Array.from({ length: 2 }, () => "x".repeat(1_900)) });
  visible.visibilityState = "hidden";
  fire("visibilitychange");
  await vi.advanceTimersByTimeAsync(0);
  expect(sent.length).toBeGreaterThan(1);
  await log.flush();
  for (let n = 0; n < 21; n++) log.info(`m${n}`);
  await log.flush();
  expect(sent.flatMap(({ records }) => records.flatMap(({ count }) => count ?? []))).toEqual([
    2, 1,
  ]);
});

test("sends nothing while the page is visible, sends once on pagehide, and resends what failed", async () => {
  const log = start({ flushAfterMs: 60_000 });
  fire("visibilitychange");
  log.info("one");
  answers = [new Response(null, { status: 503 })];
  fire("visibilitychange");
  expect(sent.length).toBe(0);
  fire("pagehide");
  fire("pagehide");
  expect(sent.length).toBe(1);
  await vi.advanceTimersByTimeAsync(61_000);
  expect(messages()).toEqual(["one", "one"]);
});

test("coming online ends the pause", async () => {
  const log = start();
  answers = [new TypeError("offline"), new TypeError("offline"), new TypeError("offline")];
  log.info("one");
  await vi.advanceTimersByTimeAsync(6_000);
  const before = sent.length;
  fire("online");
  await vi.advanceTimersByTimeAsync(0);
  expect(sent.length).toBe(before + 1);
});

test("with captureErrors, logs uncaught errors and rejections until the logger is closed", async () => {
  const log = start({ captureErrors: true });
  fire("error", { error: new RangeError("too far") });
  fire("error", { message: "Script error." });
  fire("unhandledrejection", { reason: "no reason" });
  await log.close();
  fire("error", { error: new Error("late") });
  expect(sent.flatMap(({ records }) => records)).toMatchObject([
    {
      level: "error",
      msg: "uncaught.error",
      error: { name: "RangeError", message: "too far", stack: expect.any(String) },
    },
    { msg: "uncaught.error", error: "Script error." },
    { msg: "unhandled.rejection", error: "no reason" },
  ]);
  expect([...listeners.values()].every((set) => set.size === 0)).toBe(true);
});

test("bounds whatever is logged, and never throws", async () => {
  const log = start();
  const circle: Record<string, unknown> = { name: "circle" };
  circle["itself"] = circle;
  let deep: unknown = "bottom";
  for (let n = 0; n < 50; n++) deep = { deep };
  const thrower = Object.defineProperty({}, "bad", {
    enumerable: true,
    get: () => {
      throw new Error("no");
    },
  });
  log.info("odd", {
    circle,
    deep,
    thrower,
    big: 1n,
    when: new Date(0),
    never: new Date(Number.NaN),
    fn: () => 1,
    nothing: undefined,
    list: Array.from({ length: 99 }, (_, n) => n),
    symbol: Symbol("s"),
  });
  log.info("x".repeat(100_000));
  log.info(
    "long",
    Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`k${n}`, "y".repeat(2_000)])),
  );
  log.info("forged", { level: "error", msg: "other" });
  log.info(undefined as never, null as never);
  await log.flush();
  const [odd, long, cut, forged, none] = sent.flatMap(({ records }) => records);
  expect(odd).toMatchObject({
    circle: { name: "circle", itself: "[…]" },
    thrower: { bad: "[unreadable]" },
    big: "1",
    when: "1970-01-01T00:00:00.000Z",
    never: null,
    symbol: "Symbol(s)",
  });
  expect(odd?.["list"]).toHaveLength(50);
  expect(String(long?.["msg"]).length).toBe(2_000);
  expect(cut).toEqual({ level: "info", msg: "long", truncated: expect.any(Number) });
  expect(forged).toMatchObject({ level: "info", msg: "forged" });
  expect(none).toMatchObject({ msg: "undefined" });
});

test("renames members that the server would read as metrics, and loses none of them", async () => {
  const log = start({ context: { _aws: "page" } });
  log
    .child({ CloudWatchMetrics: 1 })
    .info("one", { _aws: { CloudWatchMetrics: [] }, CloudWatchMetrics: 2, hits: -1 });
  await log.flush();
  const [record] = sent.flatMap(({ records }) => records);
  expect(record).toMatchObject({
    context__aws: "page",
    context_CloudWatchMetrics: 1,
    data__aws: { CloudWatchMetrics: [] },
    data_CloudWatchMetrics: 2,
    hits: -1,
  });
  for (const name of ["_aws", "CloudWatchMetrics"]) expect(record).not.toHaveProperty(name);
});

test("does not read all of an object that is both wide and deep", async () => {
  const log = start();
  let reads = 0;
  let wide: unknown = "bottom";
  for (let depth = 0; depth < 4; depth++) {
    const below = wide;
    const names = Array.from({ length: 50 }, (_, n) => `k${n}`);
    wide = new Proxy(Object.fromEntries(names.map((name) => [name, below])), {
      get: (target, name) => {
        reads += 1;
        return Reflect.get(target, name) as unknown;
      },
    });
  }
  log.info("wide", { wide });
  await log.flush();
  expect(messages()).toEqual(["wide"]);
  expect(reads).toBeLessThan(10_000);
});

test("a child ignores a context that cannot be read", async () => {
  const log = start({ context: { release: "7" } });
  const hostile = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("no");
      },
    },
  );
  log.child(hostile).info("one");
  await log.flush();
  expect(sent[0]?.records).toMatchObject([{ msg: "one", release: "7" }]);
});

test("a token promise that never settles does not hold records up forever", async () => {
  const tokens: (Promise<string> | string)[] = [
    new Promise(() => {}),
    new Promise(() => {}),
    "late",
  ];
  const log = start({ token: () => tokens.shift() ?? "later" });
  log.info("one");
  await vi.advanceTimersByTimeAsync(31_000);
  expect(sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(sent[0]?.headers["authorization"]).toBe("Bearer late");
});

test("in development, logs to the console and sends nothing", async () => {
  const debug = vi.spyOn(console, "debug").mockImplementation(() => {});
  const log = start({ environment: "development", context: { release: "7" } });
  log.debug("one", { n: 1 });
  await log.flush();
  expect(debug).toHaveBeenCalledWith("one", { release: "7", n: 1 });
  expect(sent).toEqual([]);
});

test("runs in a worker, where there is no page", async () => {
  vi.stubGlobal("addEventListener", undefined);
  vi.stubGlobal("removeEventListener", undefined);
  vi.stubGlobal("document", undefined);
  const log = createClientLogger({ url: "/log", token: "t", captureErrors: true });
  log.info("one");
  await log.close();
  expect(messages()).toEqual(["one"]);
});

test("the bundle has at most 3 KB gzipped, and imports nothing", async () => {
  const entry = join(import.meta.dirname, "./index.ts");
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    write: false,
    metafile: true,
  });
  const [output] = outputFiles;
  expect(gzipSync(output?.contents ?? "").byteLength).toBeLessThanOrEqual(3 * 1024);
  expect(Object.values(metafile.outputs).flatMap(({ imports }) => imports)).toEqual([]);
});
