import { once } from "node:events";
import { connect } from "node:net";
import { GetQueueUrlCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { access, buildServer } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import parse from "parse-prometheus-text-format";
import { afterAll, beforeAll, expect, test } from "vitest";
import { metricList, prometheusName } from "../../src/base/metrics/metric-list.ts";
import { shop } from "../fixtures/measured.ts";

const ann = { id: "ann-4711", tenantId: "acme-0815" };
const scraper = { id: "prometheus", tenantId: "ops", roles: ["metrics"] };
const server = buildServer({
  features: [shop],
  basePath: "/api",
  metrics: { access: access.roles("metrics") },
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(server);
});
afterAll(() => app.close());

/** What a scrape reads. */
const scrape = async () => {
  const response = await app.fetch("/api/metrics", { as: scraper });
  const text = await response.text();
  return { response, text, families: parse(text) };
};

/** The values of a metric, by those of its labels. */
const series = async (name: string, label?: string) => {
  const { text } = await scrape();
  // Without types, since the parser makes one histogram of all that a metric has.
  const families = parse(text.replaceAll(/^# .*$/gm, ""));
  const found: Record<string, number> = {};
  for (const family of families.filter(
    (one) => one.name === name || one.name === `${name}_count`,
  )) {
    for (const { labels = {}, value } of family.metrics) {
      if (Number(value) === 0 && family.name.endsWith("_total")) continue; // counters begin there
      const key = label === undefined ? Object.values(labels).join(" ") : String(labels[label]);
      found[key] = (found[key] ?? 0) + Number(value);
    }
  }
  return found;
};

const place = (id: string, key: string = id) =>
  app.fetch("/api/orders", {
    method: "POST",
    as: ann,
    body: { id },
    headers: { "Idempotency-Key": key },
  });

test("requests, claims, messages, deliveries, store calls and custom metrics are counted with their labels", async () => {
  await place("1");
  await place("1");
  await Promise.all([place("2"), place("2")]);
  await app.settled();
  await app.fetch("/api/orders/7");
  await app.fetch("/api/orders/8");
  await app.fetch("/api/peek", { as: ann });
  await app.fetch("/api/nowhere/4711");

  expect(await series("http_server_request_duration_seconds")).toEqual({
    "POST http /api/orders 201": 4,
    "GET http /api/orders/:id 200": 2,
    "GET http /api/peek 403": 1,
    "GET http 404": 1,
  });
  const claims = await series("keelson_claims_total");
  expect(claims).toMatchObject({ "write taken": 2, "write replayed": 2 });
  expect(await series("messaging_process_duration_seconds", "keelson_kind")).toEqual({
    event: 2,
    job: 2,
    delivery: 2,
  });
  expect(await series("keelson_message_attempts", "keelson_kind")).toEqual({
    event: 2,
    job: 2,
    delivery: 2,
  });
  expect(await series("keelson_message_age_seconds", "keelson_kind")).toEqual({
    event: 2,
    job: 2,
    delivery: 2,
  });
  expect(await series("keelson_deliveries_total")).toEqual({ "courier-pigeon sent": 2 });
  expect(await series("keelson_steps_total")).toEqual({ called: 2 });
  expect(await series("keelson_wall_hits_total")).toEqual({ "": 1 });
  expect(await series("keelson_config_reads_total")).toEqual({ miss: 1, hit: 1 });
  expect(await series("keelson_config_age_seconds")).toEqual({ "": 1 });
  expect(await series("shop_order_shown_total")).toEqual({ "": 2 });
  expect(await series("shop_order_value")).toEqual({ pro: 2, other: 2 });
  expect(await series("keelson_outbox_length")).toEqual({ "": expect.any(Number) });
  const calls = await series("db_client_operation_duration_seconds", "db_operation_name");
  expect(Object.keys(calls)).toEqual(
    expect.arrayContaining(["PutItem", "TransactWriteItems", "BatchGetItem"]),
  );
  expect(app.logs.filter(({ msg }) => msg === "metrics.ignored")).toMatchObject([
    {
      level: "warn",
      metric: "shop.order.nothing",
      reason: "no feature of this server declares it; add r.metric",
    },
  ]);
});

test("abandoned work counts as a dead letter of its kind", async () => {
  // Without a key there is no claim, and nothing to count of it.
  expect(
    (await app.fetch("/api/orders", { method: "POST", as: ann, body: { id: "unclaimed" } })).status,
  ).toBe(201);
  await app.settled();
  for (const id of ["bad-event", "bad-job", "bad-address"]) {
    await place(id);
    await expect(app.settled()).rejects.toThrow();
  }
  const sqs = new SQSClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: "keelson-jobs.fifo" }));
  await sqs.send(
    new SendMessageCommand({
      QueueUrl,
      MessageBody: "?",
      MessageGroupId: "g",
      MessageDeduplicationId: "d",
    }),
  );
  await expect(app.settled()).rejects.toThrow();
  sqs.destroy();

  expect(await series("keelson_dead_letters_total")).toEqual({
    event: 1,
    job: 1,
    delivery: 1,
    "": 1,
  });
  expect(await series("messaging_process_duration_seconds", "keelson_outcome")).toMatchObject({
    failed: 3,
  });
  expect(await series("keelson_deliveries_total")).toMatchObject({ "courier-pigeon refused": 1 });
});

test("a request that the parser rejects is counted with the scheme of its connection", async () => {
  const { port } = new URL((await app.fetch("/api/metrics", { as: scraper })).url);
  const before = await series("http_server_request_duration_seconds");
  const socket = connect(Number(port), "127.0.0.1", () =>
    socket.write("BREW /orders HTTP/9\r\n\r\n"),
  );
  await once(socket.resume(), "close");

  expect((await series("http_server_request_duration_seconds"))["_OTHER http 400"]).toBe(
    (before["_OTHER http 400"] ?? 0) + 1,
  );
});

test("200 overlapping requests are all counted, and no label identifies their callers", async () => {
  const before = await series("http_server_request_duration_seconds");
  const methods = ["GET", "PURGE", "BREW", "PROPFIND"];
  await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      index % 2 === 0
        ? app.fetch(`/api/orders/order-${index}`, {
            as: { id: `user-${index}`, tenantId: `tenant-${index}` },
          })
        : app.fetch(`/api/unknown/${index}`, { method: String(methods[index % 4]) }),
    ),
  );
  const { families } = await scrape();
  const after = await series("http_server_request_duration_seconds");
  const grown = Object.fromEntries(
    Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)]),
  );

  expect(grown).toMatchObject({ "GET http /api/orders/:id 200": 100, "_OTHER http 404": 100 });
  const values = families.flatMap(({ metrics }) =>
    metrics.flatMap(({ labels = {} }) => Object.values(labels)),
  );
  expect(
    values.filter((value) => /order-\d|user-\d|tenant-\d|4711|0815|unknown\//.test(value)),
  ).toEqual([]);
  expect(values.filter((value) => /^[0-9a-f-]{20,}$/.test(value))).toEqual([]);
});

test("every metric of the list is there from the start, with its type and help text", async () => {
  const { response, families } = await scrape();

  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const metric of metricList) {
    const family = families.find(({ name }) => name === prometheusName(metric));
    expect(family, metric.name).toMatchObject({
      type: metric.kind.toUpperCase(),
      help: metric.text,
    });
  }
});

test("only callers that its rule allows may read the metrics page", async () => {
  expect((await app.fetch("/api/metrics")).status).toBe(401);
  expect((await app.fetch("/api/metrics", { as: ann })).status).toBe(403);
});

test("there is no metrics page without a rule", async () => {
  const silent = await startTestApp(buildServer({ features: [shop], metrics: {} }));

  expect((await silent.fetch("/metrics", { as: scraper })).status).toBe(404);
  expect(await (await silent.fetch("/orders/7")).json()).toEqual({ limit: 1, id: "7" });
  await silent.close();
});
