import { expect, test } from "vitest";
import type { Logger } from "../log/logger.ts";
import type { MetricHandle } from "../types/handles.ts";
import { createMetrics } from "./bounded-metrics.ts";
import { type Metrics, ownMetrics } from "./metrics.ts";

test("without metrics, adding does nothing", () => {
  expect(ownMetrics(undefined, {} as Logger).add("a.b", 1)).toBeUndefined(); // safe: nothing is used
});

test("a metric is added by its handle or by its full name", () => {
  const added: unknown[][] = [];
  // Safe casts: nothing else is used.
  const metrics = { add: (...given: unknown[]) => void added.push(given) } as unknown as Metrics;
  const { add } = ownMetrics(metrics, {} as Logger);
  const placed: MetricHandle<{ readonly plan?: "pro" }> = { kind: "metric", name: "shop.a.b" };
  add(placed, 1, { plan: "pro" });
  add("shop.a.b", 2, { plan: "free" });
  expect(added).toEqual([
    ["shop.a.b", 1, { plan: "pro" }],
    ["shop.a.b", 2, { plan: "free" }],
  ]);
});

test("plain JavaScript that adds to an invalid metric gets a warning and goes on", () => {
  const warned: unknown[] = [];
  const log = {
    warn: (_message: string, fields: { metric: string }) => void warned.push(fields.metric),
  };
  const metrics = createMetrics({
    own: [],
    declared: { routes: [], handlers: [], channels: [] },
    sinks: [],
  });
  const { add } = ownMetrics(metrics, log as unknown as Logger); // safe: nothing else is used
  const textless = {
    toString() {
      throw new Error("no text");
    },
  };
  for (const name of [
    "a.b",
    "x".repeat(1_000),
    textless,
    Symbol("s"),
    null,
    undefined,
    "__proto__",
  ])
    add(name as string, 1);

  expect(warned).toEqual([
    "a.b",
    "x".repeat(200),
    "an object",
    "a symbol",
    "null",
    "undefined",
    "__proto__",
  ]);
});
