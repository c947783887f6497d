import * as client from "prom-client";
import { expect, test } from "vitest";
import { access } from "../../base/identity/access.ts";
import type { MetricDeclaration } from "../../base/metrics/metric-list.ts";
import { createRuntime } from "../server/create-runtime.ts";
import { buildServer, serverInternals } from "../server/server.ts";
import { openContainerMetrics } from "./metrics.ts";
import { prometheusSink } from "./prometheus-metrics.ts";

const own = (name: string, more: Partial<MetricDeclaration> = {}): MetricDeclaration => ({
  name,
  kind: "counter",
  unit: "1",
  labels: {},
  text: "",
  ...more,
});

test("separates names that are equal in Prometheus, and uses a metric's name as its missing help text", async () => {
  const one = own("a.b-c");
  const other = own("a-b.c");
  const sink = prometheusSink(client, [one, other]);
  sink.record(one, 1, {});
  sink.record(other, 2, {});
  sink.record(own("a.unknown"), 3, {});
  const { text } = await sink.page();

  expect(text).toBe(
    "# HELP a_b_c_total a_b_c_total\n# TYPE a_b_c_total counter\na_b_c_total 1\n\n# HELP a_b_c_total_2 a_b_c_total_2\n# TYPE a_b_c_total_2 counter\na_b_c_total_2 2\n",
  );
});

test("a histogram without its own buckets uses those of the client", async () => {
  const metric = own("a.size", { kind: "histogram", unit: "By" });
  const sink = prometheusSink(client, [metric]);
  sink.record(metric, 0.3, {});

  expect((await sink.page()).text).toContain('a_size_bytes_bucket{le="0.5"} 1');
});

test("a counter starts at 0 for each combination of label values, so that its first event is an increase", async () => {
  const given = own("a.given", {
    labels: { plan: ["free", "pro"], "keelson.outcome": ["sent", "lost"] },
  });
  const many = ["1", "2", "3", "4", "5", "6", "7", "8"];
  const sink = prometheusSink(client, [
    given,
    own("a.wide", { labels: { a: many, b: many } }),
    own("a.open", { labels: { "http.route": "routes" } }),
    own("a.spread", { kind: "histogram", labels: { plan: ["free"] } }),
  ]);
  sink.record(given, 1, { plan: "pro", "keelson.outcome": "lost" });
  const { text } = await sink.page();

  expect(text.split("\n").filter((line) => /^[^#]/.test(line))).toEqual([
    'a_given_total{plan="free",keelson_outcome="sent"} 0',
    'a_given_total{plan="free",keelson_outcome="lost"} 0',
    'a_given_total{plan="pro",keelson_outcome="sent"} 0',
    'a_given_total{plan="pro",keelson_outcome="lost"} 1',
  ]);
});

test("the page leaves out metrics that an application registers itself", async () => {
  new client.Counter({ name: "applications_own", help: "x" });
  const sink = prometheusSink(client, [own("a.b")]);

  expect((await sink.page()).text).not.toContain("applications_own");
  client.register.clear();
});

test("without prom-client the container starts, says what to install, and has no metrics page", async () => {
  const server = buildServer({ features: [], metrics: { access: access.everyone } });
  const logs: Record<string, unknown>[] = [];
  const measuring = await openContainerMetrics(serverInternals(server), async () => undefined);
  const runtime = createRuntime(server, {
    variables: {},
    measuring,
    write: (line) => void logs.push(JSON.parse(line) as Record<string, unknown>),
    openAdapters: () => Promise.reject(new Error("unused")),
  });

  expect(logs).toMatchObject([
    { level: "warn", msg: "metrics.unavailable", fix: "npm install prom-client" },
  ]);
  expect(runtime.routes.match("GET", "/metrics", "").kind).toBe("not-found");
});
