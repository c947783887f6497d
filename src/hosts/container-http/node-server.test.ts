// own process: it fakes timers
import { EventEmitter } from "node:events";
import type { Server } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import type { Logger } from "../../base/log/logger.ts";
import { reportRefused } from "./node-server.ts";

afterEach(() => void vi.useRealTimers());

test("logs a flood of refused connections with one line at once, and their number every now and then", () => {
  vi.useFakeTimers();
  // Safe: of a server its events and its limit are used, of a logger one method.
  const server = Object.assign(new EventEmitter(), { maxConnections: 2 }) as unknown as Server;
  const lines: unknown[] = [];
  reportRefused(server, {
    warn: (...line: unknown[]) => void lines.push(line),
  } as unknown as Logger);
  const flood = (count: number) => {
    for (let drop = 0; drop < count; drop += 1) server.emit("drop");
  };
  const line = (count: number) => ["server.connections_refused", { count, maxConnections: 2 }];

  flood(1_000);
  expect(lines).toEqual([line(1)]);
  vi.advanceTimersByTime(10_000);
  expect(lines).toEqual([line(1), line(999)]);
  vi.advanceTimersByTime(60_000);
  expect(lines).toHaveLength(2);
  flood(2);
  expect(lines.slice(2)).toEqual([line(1)]);
});
