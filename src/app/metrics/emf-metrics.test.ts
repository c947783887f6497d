import * as powertools from "@aws-lambda-powertools/metrics";
import { logMetrics } from "@aws-lambda-powertools/metrics/middleware";
import middy from "@middy/core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { emfSink, openLambdaMetrics } from "./emf-metrics.ts";

const metric = (more: Partial<MetricDeclaration> = {}): MetricDeclaration => ({
  name: "a.b",
  kind: "counter",
  unit: "1",
  labels: {},
  text: "",
  ...more,
});

let lines: Record<string, unknown>[] = [];
beforeEach(() => {
  lines = [];
  vi.spyOn(process.stdout, "write").mockImplementation(
    (text) => lines.push(JSON.parse(String(text))) > 0,
  );
});
afterEach(() => vi.restoreAllMocks());

const sinkOf = () => emfSink(powertools, { namespace: "shop-dev", serviceName: "shop" });

test("uses CloudWatch's units, and Count for a unit it does not have", () => {
  const sink = sinkOf();
  for (const unit of ["s", "ms", "By", "%", "{order}", "toString"])
    sink.record(metric({ name: `a.${unit}`, unit }), 1, {});
  sink.flush();

  const units = lines.flatMap((line) =>
    Object(line["_aws"]).CloudWatchMetrics[0].Metrics.map(({ Unit }: { Unit: string }) => Unit),
  );
  expect(units).toEqual(["Seconds", "Milliseconds", "Bytes", "Percent", "Count", "Count"]);
});

test("writes the values of one set of labels as one line, and each value once", () => {
  const sink = sinkOf();
  for (const value of [1, 2, 3])
    sink.record(metric({ dimensions: ["plan"] }), value, { plan: "pro", color: "red" });
  sink.flush();
  sink.flush();

  expect(lines).toMatchObject([{ service: "shop", plan: "pro", color: "red", "a.b": [1, 2, 3] }]);
});

test("splits values beyond the limit of a line into several lines with all labels", () => {
  const sink = sinkOf();
  for (let value = 0; value < 250; value += 1) sink.record(metric(), value, { color: "red" });
  sink.flush();

  expect(lines.map((line) => [(line["a.b"] as number[]).length, line["color"]])).toEqual([
    [100, "red"],
    [100, "red"],
    [50, "red"],
  ]);
});

test("writes values up to the limit as one line, and no empty line at the end of the invocation", () => {
  const sink = sinkOf();
  for (let value = 0; value < 100; value += 1) sink.record(metric(), value, { color: "red" });
  sink.flush();

  expect(lines.map((line) => (line["a.b"] as number[]).length)).toEqual([100]);
});

test("keeps the namespace, dimensions and values of an application's own Metrics", async () => {
  const theirs = new powertools.Metrics({
    namespace: "theirs",
    serviceName: "till",
    defaultDimensions: { plan: "pro" },
  });
  const sink = sinkOf();
  const handler = async () => {
    theirs.addMetric("sold", "Count", 1);
    sink.record(metric(), 2, { plan: "free" });
    sink.flush();
  };
  await middy(handler).use(logMetrics(theirs))({}, {} as never);
  sink.flush();

  const written = lines.map((line) => [Object(line["_aws"]).CloudWatchMetrics[0], line]);
  expect(written).toMatchObject([
    [
      { Namespace: "shop-dev", Dimensions: [["service"]] },
      { service: "shop", plan: "free", "a.b": 2 },
    ],
    [
      { Namespace: "theirs", Dimensions: [["service", "plan"]] },
      { service: "till", plan: "pro", sold: 1 },
    ],
  ]);
});

test("a line that cannot be written affects neither the invocation nor the other lines", () => {
  const sink = sinkOf();
  sink.record(metric({ dimensions: ["a.b"] }), 1, { "a.b": "is a metric as well" });
  sink.record(metric({ name: "a.c" }), 1, {});

  expect(sink.flush).not.toThrow();
  expect(lines).toMatchObject([{ "a.c": 1 }]);
  sink.flush();
  expect(lines).toHaveLength(1);
});

test("bounds the label sets kept from one invocation to the next", () => {
  const sink = sinkOf();
  for (let index = 0; index < 300; index += 1) sink.record(metric(), 1, { n: `n${index}` });
  sink.flush();
  sink.record(metric(), 1, { n: "n1" });
  sink.flush();

  expect(lines).toHaveLength(301);
});

test("checks only the labels measured in this invocation when it ends", () => {
  let looks = 0;
  class Counting extends powertools.Metrics {
    override hasStoredMetrics(): boolean {
      looks += 1;
      return super.hasStoredMetrics();
    }
  }
  const sink = emfSink({ Metrics: Counting }, { namespace: "shop-dev", serviceName: "shop" });
  const series = Array.from({ length: 100 }, (_, index) => ({ n: `n${index}` }));
  for (const labels of series) sink.record(metric(), 1, labels);
  sink.flush();
  looks = 0;
  sink.record(metric(), 1, { ...series[0] });
  sink.flush();

  expect(lines).toHaveLength(101);
  expect(looks).toBeLessThan(5);
});

test("the function runs without Powertools' package and says what to install", async () => {
  const server = buildServer({ features: [], metrics: {} });
  const measuring = await openLambdaMetrics(serverInternals(server), {}, async () => undefined);
  const logs: Record<string, unknown>[] = [];
  const runtime = createRuntime(server, {
    variables: {},
    measuring,
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: () => Promise.reject(new Error("unused")),
  });

  expect(runtime.metrics).toBeUndefined();
  expect(logs).toMatchObject([
    {
      level: "warn",
      msg: "metrics.unavailable",
      fix: "npm install @aws-lambda-powertools/metrics",
    },
  ]);
});

test("the namespace is the stack's or the table prefix; the service is an option", async () => {
  const written = async (variables: Record<string, string>, service?: string) => {
    const metrics = service === undefined ? {} : { service };
    const { metrics: opened } = await openLambdaMetrics(
      serverInternals(buildServer({ features: [], metrics })),
      variables,
    );
    opened?.record("keelson.wall.hits", 1);
    opened?.flush?.();
    const line = lines.at(-1);
    return [Object(line?.["_aws"]).CloudWatchMetrics[0].Namespace, line?.["service"]];
  };

  expect(await written({ POWERTOOLS_METRICS_NAMESPACE: "shop-dev" })).toEqual([
    "shop-dev",
    "keelson",
  ]);
  expect(await written({}, "shop")).toEqual(["keelson", "shop"]);
});
