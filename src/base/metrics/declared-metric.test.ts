import { expect, test } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import type { FeatureBuilder } from "../../app/features/feature-builder.ts";
import { buildServer } from "../../app/server/server.ts";
import { BootError } from "../errors/boot.ts";
import type { MetricOptions } from "./declared-metric.ts";

const build = (declare: (r: FeatureBuilder) => unknown, name = "shop") =>
  buildServer({ features: [defineFeature(name, (r) => void declare(r))] });
/** What is wrong, by keys and what cannot be taken. */
const problems = (declare: (r: FeatureBuilder) => unknown, name?: string) => {
  try {
    build(declare, name);
    return [];
  } catch (error) {
    return (error as BootError).problems.map(({ key, message }) => `${key}: ${message}`);
  }
};

test("a metric is declared under its full name with its possible dimensions", () => {
  const server = build((r) => {
    r.metric("order.placed");
    r.metric("order.value", {
      kind: "histogram",
      unit: "EUR",
      labels: { plan: ["free", "pro"] },
      buckets: [10, 100],
      text: "Of an order.",
    });
  });

  expect([...server.registry.metrics.values()]).toEqual([
    {
      feature: "shop",
      name: "shop.order.placed",
      kind: "counter",
      unit: "1",
      labels: {},
      dimensions: [],
      text: "",
    },
    {
      feature: "shop",
      name: "shop.order.value",
      kind: "histogram",
      unit: "EUR",
      labels: { plan: ["free", "pro"] },
      dimensions: ["plan"],
      buckets: [10, 100],
      text: "Of an order.",
    },
  ]);
});

test.each<[string, unknown]>([
  ["another kind", { kind: "gauge" }],
  ["a unit that is no text", { unit: 1 }],
  ["a text that is too long", { text: "x".repeat(301) }],
  ["buckets in no order", { buckets: [2, 1] }],
  ["buckets that are no list", { buckets: 5 }],
  ["labels that are none", { labels: "plan" }],
  ["a label with any value", { labels: { user: "any" } }],
  ["a value that is no text", { labels: { plan: [1] } }],
  ["a label of no letters", { labels: { "": ["1"] } }],
  ["a label of several words", { labels: { "the.plan": ["1"] } }],
  ["a label that is a prototype", { labels: JSON.parse('{"__proto__":["1"]}') }],
  ["a label of Prometheus' own", { labels: { le: ["1"] } }],
  ["a label that CloudWatch has already", { labels: { service: ["1"] } }],
  ["a value without a character", { labels: { plan: [""] } }],
  ["a value that CloudWatch does not take", { labels: { plan: ["größer"] } }],
  ["a value of two lines", { labels: { plan: ["a\nb"] } }],
  ["a value with a colon first", { labels: { plan: [":a"] } }],
  ["buckets that are texts", { buckets: ["1", "2"] }],
  ["a bucket of everything", { buckets: [1, Number.POSITIVE_INFINITY] }],
  ["a bucket that is no number", { buckets: [Number.NaN] }],
  ["51 values", { labels: { plan: Array.from({ length: 51 }, (_, index) => `p${index}`) } }],
  ["five labels", { labels: { a: ["1"], b: ["1"], c: ["1"], d: ["1"], e: ["1"] } }],
])("%s fails the boot", (_what, options) => {
  expect(problems((r) => r.metric("order.placed", options as MetricOptions))).toEqual([
    "metric shop.order.placed: it is not valid",
  ]);
});

test("an unknown option fails the boot by name", () => {
  const misspelt = { unti: "s" } as MetricOptions;

  expect(problems((r) => r.metric("order.placed", misspelt))).toEqual([
    'metric shop.order.placed: unknown option "unti"',
  ]);
});

test("a name has two words, and no feature may use the name of an OpenTelemetry namespace", () => {
  expect(problems((r) => r.metric("placed"))).toEqual(["metric shop.placed: it is not valid"]);
  expect(problems((r) => r.metric(7 as never))).toEqual(["metric shop.7: it is not valid"]);
  expect(problems((r) => r.metric("server.request"), "http")).toEqual([
    "metric http.server.request: it is not valid",
  ]);
});

test("a metric declared twice fails the boot", () => {
  const twice = (r: FeatureBuilder) => {
    r.metric("order.placed");
    r.metric("order.placed");
  };

  expect(problems(twice)).toEqual(["shop.order.placed: this metric is declared twice"]);
});

test.each(['sh"op', "sh'op", "shop$", "shöp", ":shop", ""])(
  "the service name %j, which dashboard searches cannot contain, fails the boot",
  (service) => {
    expect(() => buildServer({ features: [], metrics: { service } })).toThrow(/metrics.service/);
  },
);

test("options of `metrics` are validated", () => {
  const wrong = { access: "everyone", service: "a b", namespace: "x" } as never;
  const found = () => buildServer({ features: [], metrics: wrong });

  expect(found).toThrow(BootError);
  expect(found).toThrow(
    /metrics.access.*a rule of `access`[\s\S]*metrics.service.*letters, digits[\s\S]*unknown option "namespace"/,
  );
});
