import { existsSync, readdirSync } from "node:fs";
import { appendFile, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLogs } from "./read-logs.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "keelson-read-logs-"));
});
afterAll(() => rm(folder, { recursive: true }));

const time = (ms: number) => new Date(1_700_000_000_000 + ms).toISOString();
const request = (requestId: string, ms = 0, more: object = {}) => ({
  requestId,
  trace_id: `t-${requestId}`,
  msg: "request.completed",
  status: 200,
  time: time(ms),
  ...more,
});
const text = (...records: readonly (object | string)[]) =>
  records
    .map((record) => `${typeof record === "string" ? record : JSON.stringify(record)}\n`)
    .join("");
async function fileOf(content: string): Promise<string> {
  const path = join(folder, crypto.randomUUID());
  await writeFile(path, content);
  return path;
}
async function find(paths: readonly string[], id: string, stdin?: Readable) {
  const logs = await openLogs(paths, stdin);
  try {
    return await logs.find(id);
  } finally {
    await logs.close();
  }
}
const messages = (lines: readonly { readonly msg: string }[]) => lines.map(({ msg }) => msg).sort();

test("finds all lines of a request by the ID of any of its messages, across files", async () => {
  const published = request("r1", 1, { msg: "event.published", publishedId: "e1", event: "a.b" });
  const consumed = request("r1", 9, {
    msg: "event.completed",
    eventId: "e1",
    origRequestId: "r1",
    causedBy: "r1",
    handler: "a.b.c",
  });
  const failed = {
    msg: "event.dispatch_failed",
    events: ["a.b e1", "a.b e7"],
    reason: "throttled",
    time: time(3),
  };
  const letter = { msg: "queue.dead_lettered", eventId: "e1", queue: "q", time: time(20) };
  const paths = [
    await fileOf(text(consumed, request("r2"), letter)),
    await fileOf(text("START", request("r1"), published, failed)),
  ];
  for (const id of ["r1", "e1", "t-r1"]) {
    const { lines, broken, leftOut, lastMs } = await find(paths, id);
    expect([messages(lines), broken, leftOut]).toEqual([
      [
        "event.completed",
        "event.dispatch_failed",
        "event.published",
        "queue.dead_lettered",
        "request.completed",
      ],
      0,
      0,
    ]);
    expect(lastMs).toBe(1_700_000_000_020);
  }
  expect((await find(paths, "e7")).lines).toHaveLength(1);
  expect(await find(paths, "r9")).toMatchObject({ lines: [], lastMs: 1_700_000_000_020 });
  expect(await find([], "r1")).toMatchObject({ lines: [], lastMs: undefined });
});

test("an ID inside another text is not a match", async () => {
  const path = await fileOf(
    text(request("r10"), request("r2", 0, { msg: "order.seen r1", reason: "r1" })),
  );
  expect((await find([path], "r1")).lines).toEqual([]);
});

test("a record without a time is no line", async () => {
  const path = await fileOf(text({ msg: "order.seen", requestId: "r1" }));
  expect(await find([path], "r1")).toMatchObject({ lines: [], broken: 0, lastMs: undefined });
});

test("finds lines across chunk boundaries and with many IDs", async () => {
  const many = Array.from({ length: 40 }, (_, index) => [
    request("r1", index, { msg: "job.enqueued", job: "a.b.c", enqueuedId: `j${index}` }),
    { msg: "queue.retry", jobId: `j${index}`, time: time(index), reason: "é".repeat(30_000) },
    request("other", index, { reason: "x".repeat(40_000) }),
  ]).flat();
  const { lines } = await find([await fileOf(text(...many))], "r1");
  expect(lines).toHaveLength(80);
});

test("counts a broken line that mentions the ID, and reads a last line without a newline", async () => {
  const path = await fileOf(
    `${JSON.stringify(request("r1")).slice(0, -5)}\n${JSON.stringify(request("r1"))}`,
  );
  expect(await find([path], "r1")).toMatchObject({ lines: [{ requestId: "r1" }], broken: 1 });
  const long = await fileOf(
    `{"msg":"r1 ${"x".repeat(17 * 1_048_576)}\n${JSON.stringify(request("r1"))}`,
  );
  expect((await find([long], "r1")).lines.length).toBeLessThan(2);
});

test("ignores lines that are appended during a reading", async () => {
  const path = await fileOf(text(request("r1")));
  const logs = await openLogs([path]);
  await appendFile(path, text(request("r1", 5)));
  expect((await logs.find("r1")).lines).toHaveLength(1);
  await logs.close();
});

test("stops at the end of a file that is truncated during a reading", async () => {
  const path = await fileOf(text(request("r1")));
  const logs = await openLogs([path]);
  await truncate(path);
  expect((await logs.find("r1")).lines).toEqual([]);
  await logs.close();
});

test("reads standard input more than once, and removes its temporary copy", async () => {
  const spools = () =>
    readdirSync(tmpdir()).filter(
      (name) => name.startsWith("keelson-trace-") && existsSync(join(tmpdir(), name, "stdin")),
    );
  const before = spools();
  const stdin = Readable.from([
    text(request("r1", 1, { msg: "job.enqueued", enqueuedId: "j1" })),
    text(request("r1")),
  ]);
  expect((await find(["-"], "j1", stdin)).lines).toHaveLength(2);
  expect(spools()).toEqual(before);
  await expect(find(["-", join(folder, "nowhere")], "j1", Readable.from([]))).rejects.toThrow(
    "ENOENT",
  );
  expect(spools()).toEqual(before);
});

test("the last request is the application's own latest one", async () => {
  const last = async (...records: readonly object[]) => {
    const logs = await openLogs([await fileOf(text(...records))]);
    const id = await logs.lastRequest();
    await logs.close();
    return id;
  };
  expect(
    await last(
      request("r1", 5),
      request("r2", 9),
      request("r3", 7),
      request("log", 20, { handler: "keelson.log.write" }),
    ),
  ).toBe("r2");
  expect(
    await last(
      { msg: "request.completed", time: time(1) },
      request("r9", 1, { msg: "order.request.completed" }),
    ),
  ).toBeUndefined();
});

test("counts the lines beyond the limit", async () => {
  const path = await fileOf(text(...Array.from({ length: 9 }, (_, index) => request("r1", index))));
  const logs = await openLogs([path], undefined, 5);
  const { lines, leftOut } = await logs.find("r1");
  expect([lines.length, leftOut]).toEqual([5, 4]);
  await logs.close();
});

test("shows its progress", async () => {
  const shown: string[] = [];
  const logs = await openLogs([await fileOf(text(request("r1")))]);
  await logs.find("r1", (said) => void shown.push(said));
  await logs.close();
  expect(shown[0]).toBe("pass 1 of 3: 0 of 1 MB of logs");
  expect(shown.at(-1)).toBe("");
});
