import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { Logger } from "../../base/log/logger.ts";
import type { LifecycleEvent } from "../../base/process/lifecycle.ts";
import { listen } from "./process-signals.ts";

function listening(environment: "development" | "production") {
  const lines: unknown[] = [];
  const events: LifecycleEvent[] = [];
  const line: Logger["info"] = (msg, data) => void lines.push([msg, data]);
  const emitter = new EventEmitter();
  const process = Object.assign(emitter, { env: {}, exit: () => undefined });
  // Safe: only these members of the logger are used.
  const log = { info: line, error: line } as Parameters<typeof listen>[1]["log"];
  const ended = Promise.withResolvers<0 | 1>();
  const tell = (event: LifecycleEvent) => void events.push(event);
  const { ignore } = listen(process, { log, environment }, { tell, ended: ended.promise });
  return { process, lines, events, ignore };
}

test("a second signal hurries the shutdown, unless it follows within 200 ms", async () => {
  const { process, lines, events, ignore } = listening("production");
  process.emit("SIGTERM", "SIGTERM");
  process.emit("SIGINT", "SIGINT"); // as npm forwards it
  await expect
    .poll(() => {
      process.emit("SIGINT", "SIGINT");
      return lines;
    })
    .toEqual([
      ["shutdown.started", { signal: "SIGTERM" }],
      ["shutdown.hurried", { signal: "SIGINT" }],
    ]);
  expect(events).toEqual([
    { type: "terminate", skipsLinger: false },
    { type: "terminate", skipsLinger: false },
  ]);
  ignore();
  expect(process.eventNames()).toEqual([]);
});

test("only Ctrl+C in development skips the linger", () => {
  for (const [signal, skipsLinger] of [
    ["SIGINT", true],
    ["SIGTERM", false],
  ] as const) {
    const { process, events } = listening("development");
    process.emit(signal, signal);
    expect(events).toEqual([{ type: "terminate", skipsLinger }]);
  }
});

test("an error that nobody caught is logged, and ends the process", () => {
  const { process, lines, events } = listening("production");
  process.emit("uncaughtException", new Error("thrown"));
  process.emit("unhandledRejection", new Error("rejected"));
  expect(lines).toMatchObject([
    ["process.uncaught_exception", { message: "thrown" }],
    ["process.unhandled_rejection", { message: "rejected" }],
  ]);
  expect(events).toEqual([{ type: "fault" }, { type: "fault" }]);
});
