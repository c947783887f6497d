import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { BootError } from "../../base/errors/boot.ts";
import { access } from "../../base/identity/access.ts";
import type { LogOptions, RequestLines } from "../../base/log/log-options.ts";
import type { Logger } from "../../base/log/logger.ts";
import { startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { defineFeature } from "../features/feature.ts";
import { buildServer } from "../server/server.ts";
import { createColdStart, createRunLines } from "./run-lines.ts";
import type { ObservedRun, RequestEnd, RunEnd, TaskEnd } from "./run-observer.ts";

type Line = readonly [level: string, msg: string, data: Readonly<Record<string, unknown>>];

/** What is written of a run that took so long and ended so. */
function linesOf(
  end: RunEnd,
  { requests, tookMs = 5, ...scope }: Partial<ObservedRun> & Options = {},
): Line[] {
  const lines: Line[] = [];
  const write = (level: string) => (msg: string, data?: Record<string, unknown>) =>
    void lines.push([level, msg, JSON.parse(JSON.stringify(data))]);
  const log = { info: write("info"), debug: write("debug") } as unknown as Logger; // the levels of these lines
  const observer = createRunLines({
    requests,
    clock: { now: () => 1_000 + tookMs },
    coldStart: { isNext: true },
  });
  observer?.ended(
    { startMs: 1_000, isReplayed: false, isColdStart: false, ...scope, log } as ObservedRun,
    end,
  ); // what is read of it
  return lines;
}

interface Options {
  readonly requests?: RequestLines | undefined;
  readonly tookMs?: number;
}

const request: RequestEnd = {
  kind: "request",
  method: "GET",
  status: 200,
  bytes: 7,
  isAborted: false,
};
const job: TaskEnd = { kind: "job", outcome: "processed" };

test("a request's line says how it was answered and leaves out unknown fields", () => {
  const data = {
    method: "GET",
    status: 200,
    durationMs: 5,
    bytes: 7,
    replayed: false,
    coldStart: false,
  };
  expect(linesOf(request)).toEqual([["info", "request.completed", data]]);
  expect(
    linesOf(
      { ...request, method: "X".repeat(9_000), isAborted: true },
      { route: "GET /files/:id", isReplayed: true },
    ),
  ).toEqual([
    [
      "info",
      "request.completed",
      { ...data, method: "X".repeat(32), route: "/files/:id", replayed: true, aborted: true },
    ],
  ]);
  expect(linesOf(request, { tookMs: -50 })).toMatchObject([
    ["info", "request.completed", { durationMs: 0 }],
  ]); // a clock that was set
});

test("health polls, ready or not, and scrapes that succeed have no line", () => {
  for (const handler of ["keelson.health.live", "keelson.health.ready", "keelson.metrics.show"]) {
    for (const status of [200, 503])
      expect(linesOf({ ...request, status }, { handler })).toEqual([]);
    for (const status of [401, 403, 500])
      expect(linesOf({ ...request, status }, { handler })).toHaveLength(1);
  }
  expect(linesOf(request, { handler: "metrics.order.show" })).toHaveLength(1);
});

test("a run without an answer logs its outcome, attempt and delay", () => {
  expect(linesOf({ ...job, attempt: 2, sinceMs: 400 })).toEqual([
    [
      "info",
      "job.completed",
      { outcome: "processed", durationMs: 5, attempt: 2, ageMs: 600, replayed: false },
    ],
  ]);
  expect(linesOf({ ...job, kind: "event", event: "file.created", sinceMs: 2_000 })).toMatchObject([
    ["info", "event.completed", { event: "file.created", ageMs: 0 }],
  ]);
  expect(linesOf({ ...job, kind: "delivery", channel: "mail", outcome: "failed" })).toMatchObject([
    ["info", "delivery.completed", { channel: "mail", outcome: "failed" }],
  ]);
});

test("the level is debug when nothing ran because the work is done or runs elsewhere", () => {
  expect(linesOf(job, { isReplayed: true })).toMatchObject([
    ["debug", "job.completed", { replayed: true }],
  ]);
  expect(linesOf({ ...job, outcome: "handed-back", afterMs: 9 })).toMatchObject([
    ["debug", "job.completed", { afterMs: 9 }],
  ]);
  expect(linesOf({ kind: "run", outcome: "processed" }, { isReplayed: true })).toMatchObject([
    ["info", "run.completed", {}],
  ]);
});

const failed = [{ status: 404 }, { status: 500 }, { isAborted: true }];
test.each<
  [name: string, requests: RequestLines | undefined, quick: number, slow: number, failed: number]
>([
  ["nothing", undefined, 1, 1, 1],
  ["true", true, 1, 1, 1],
  ["false", false, 0, 0, 0],
  ['"failed"', "failed", 0, 0, 1],
  ["slowerThanMs", { slowerThanMs: 5 }, 0, 1, 1],
])(
  "with log.requests set to %s, quick, slow and failed requests have lines accordingly",
  (_name, requests, quick, slow, broken) => {
    expect(linesOf(request, { requests, tookMs: 5 })).toHaveLength(quick);
    expect(linesOf(request, { requests, tookMs: 6 })).toHaveLength(slow);
    for (const end of failed)
      expect(linesOf({ ...request, ...end }, { requests })).toHaveLength(broken);
    expect(linesOf(job, { requests, tookMs: 5 })).toHaveLength(quick);
    expect(linesOf(job, { requests, tookMs: 6 })).toHaveLength(slow);
    expect(linesOf({ ...job, outcome: "failed" }, { requests })).toHaveLength(broken);
  },
);

test.each([
  ["of a container", undefined, true],
  ["of a function that was asked to start", "on-demand", true],
  ["of a function that was started before it was asked", "provisioned-concurrency", false],
])("the first request of a process is its cold start: %s", (_name, type, expected) => {
  expect(createColdStart({ AWS_LAMBDA_INITIALIZATION_TYPE: type })).toEqual({ isNext: expected });
});

test("a health check that was the first request leaves the cold start to the next", () => {
  const coldStart = { isNext: false };
  const observer = createRunLines({ requests: true, clock: { now: () => 0 }, coldStart });
  const poll = { handler: "keelson.health.live", startMs: 0, isReplayed: false };
  observer?.ended({ ...poll, isColdStart: false } as ObservedRun, request); // what is read of it
  expect(coldStart.isNext).toBe(false);
  observer?.ended({ ...poll, isColdStart: true } as ObservedRun, request); // what is read of it
  expect(coldStart.isNext).toBe(true);
});

test.each([
  ["often"],
  [0],
  [null],
  [[]],
  [{}],
  [{ slowerThanMs: -1 }],
  [{ slowerThanMs: "5" }],
  [{ slowerThanMs: 1, more: 1 }],
])("the boot refuses %j as log.requests and lists the valid values", (requests) => {
  const log = { requests } as unknown as LogOptions;
  expect(() => buildServer({ features: [], log })).toThrow(BootError);
  expect(() => buildServer({ features: [], log })).toThrow(
    'true, false, "failed" or { slowerThanMs }',
  );
});

let app: TestApp;
let work: (attempt: number) => void = () => undefined;
let count = 0;
const text = z.object({ text: z.string() });
beforeAll(async () => {
  const notes = defineFeature("notes", (r) => {
    r.event("note.written", text);
    r.write("note.write", {
      route: "POST /notes/:id",
      access: access.everyone,
      handler: async (ctx) => {
        await ctx.publish("note.written", { text: "written" });
        await ctx.enqueue("notes.note.print", { text: "written" });
        await ctx.delivery.send("log", { text: "written" });
        return {};
      },
    });
    r.on("note.written", { name: "index", handler: async () => undefined });
    r.job("note.print", { input: text, handler: async () => work(++count) });
    r.schedule("note.sweep", { cron: "0 * * * *", handler: async () => undefined });
  });
  app = await startTestApp(buildServer({ features: [notes] }));
});
afterAll(() => app?.close());

const said = (msg: string) => app.logs.filter((line) => line["msg"] === msg);

test("a write, its replay and everything it causes have one line each, with the same request ID", async () => {
  work = (attempt) => {
    if (attempt === 1) throw new Error("not yet");
  };
  const headers = { "idempotency-key": "one", "x-request-id": "r-1" };
  for (const _time of [1, 2])
    expect((await app.fetch("/notes/n1", { method: "POST", body: {}, headers })).status).toBe(200);
  await app.settled();

  await expect
    .poll(() => said("request.completed"))
    .toMatchObject([
      {
        requestId: "r-1",
        method: "POST",
        route: "/notes/:id",
        status: 200,
        replayed: false,
        coldStart: true,
      },
      {
        requestId: "r-1",
        method: "POST",
        route: "/notes/:id",
        status: 200,
        replayed: true,
        coldStart: false,
      },
    ]);
  const own = {
    level: "info",
    requestId: "r-1",
    replayed: false,
    durationMs: expect.any(Number),
    ageMs: expect.any(Number),
  };
  expect(said("event.completed")).toMatchObject([
    {
      ...own,
      handler: "notes.note.index",
      event: "note.written",
      outcome: "processed",
      attempt: 1,
    },
  ]);
  expect(said("job.completed")).toMatchObject([
    { ...own, handler: "notes.note.print", outcome: "failed", attempt: 1 },
    { ...own, handler: "notes.note.print", outcome: "processed", attempt: 2 },
  ]);
  expect(said("job.completed").at(-1)?.["ageMs"]).toBeGreaterThanOrEqual(1_000); // the pause before the second attempt
  expect(said("job.failed")).toHaveLength(1);
  expect(said("delivery.completed")).toMatchObject([
    { ...own, channel: "log", outcome: "processed", attempt: 1 },
  ]);
});

test("a redelivered message is a replay, and a delivery with an invalid payload has no channel", async () => {
  const [event] = app.events;
  if (event === undefined) throw new Error("no event was published");
  expect(await app.deliver(event)).toBe("skipped");
  expect(said("event.completed").at(-1)).toMatchObject({
    level: "debug",
    outcome: "processed",
    replayed: true,
  });
  const broken = {
    name: "keelson.delivery.send",
    jobId: "d-1",
    payload: {},
    causedBy: "r",
    origRequestId: "r",
  };
  await expect(app.deliver(broken)).rejects.toThrow();
  expect(said("delivery.completed").at(-1)).toMatchObject({ outcome: "failed" });
  expect(said("delivery.completed").at(-1)).not.toHaveProperty("channel");
});

test("a fired schedule logs its delay and its attempt", async () => {
  app.clock.advance(3_600_000);
  await app.settled();

  expect(said("schedule.completed")).toMatchObject([
    {
      level: "info",
      handler: "notes.note.sweep",
      outcome: "processed",
      attempt: 1,
      ageMs: expect.any(Number),
    },
  ]);
});

test("without request lines nothing of a run is logged except its failure", async () => {
  const quiet = buildServer({
    features: [
      defineFeature("quiet", (r) => {
        r.job("note.print", {
          input: text,
          handler: async () => Promise.reject(new Error("broken")),
        });
      }),
    ],
    log: { requests: false },
  });
  const other = await startTestApp(quiet);
  try {
    const job = {
      name: "quiet.note.print",
      jobId: "j-1",
      payload: { text: "a" },
      causedBy: "r",
      origRequestId: "r",
    };
    await expect(other.deliver(job)).rejects.toThrow("broken");
    await quiet.run({ reason: "test" }, () => undefined);
    await expect(
      quiet.run({ reason: "test" }, () => Promise.reject(new Error("broken"))),
    ).rejects.toThrow("broken");
    const messages = other.logs
      .map(({ msg }) => msg)
      .filter((msg) => !String(msg).startsWith("job.taken"));
    expect(messages).toEqual(["job.failed", "run.started", "run.started", "run.failed"]);
  } finally {
    await other.close();
  }
});
