import { readFileSync } from "node:fs";
import {
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { Ajv } from "ajv";
import { access, buildServer, defineFeature } from "keelson";
import { lambdaHttp, lambdaOutbox, lambdaQueue, lambdaSchedule, lambdaSweep } from "keelson/lambda";
import { lambdaContext, lambdaEvent, startTestApp, type TestApp } from "keelson/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { metricList } from "../../src/base/metrics/metric-list.ts";
import { shop } from "../fixtures/measured.ts";
import { templateOf } from "../support/server-templates.ts";
import { timeIsOver } from "../support/time-is-over.ts";

const schema = JSON.parse(
  readFileSync(new URL("../fixtures/emf-schema.json", import.meta.url), "utf8"),
) as object;
const isEmf = new Ajv({ strict: false }).compile(schema);

/** A line in CloudWatch's format. */
interface EmfLine {
  readonly _aws: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string; readonly Unit: string }[];
    }[];
  };
  readonly [name: string]: unknown;
}

const server = buildServer({
  features: [shop],
  metrics: { access: access.everyone },
  dynamodb: { prefix: "shop" },
});
let app: TestApp;
let lines: Record<string, unknown>[] = [];

beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [shop], dynamodb: { prefix: "shop" } }));
  await app.settled(); // makes the queues
});
afterAll(() => app.close());
beforeEach(() => {
  lines = [];
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.stubEnv("POWERTOOLS_METRICS_NAMESPACE", "shop-dev");
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    for (const line of String(text).trim().split("\n"))
      lines.push(JSON.parse(line) as Record<string, unknown>);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** The lines of metrics so far, each held against the schema that AWS publishes, and its references to what it has. */
const emf = (): EmfLine[] => {
  const found = lines.filter((line): line is EmfLine => "_aws" in line);
  for (const line of found) {
    expect(isEmf(line), JSON.stringify(isEmf.errors)).toBe(true);
    for (const { Dimensions, Metrics } of line._aws.CloudWatchMetrics) {
      for (const name of Dimensions.flat()) expect(line[name]).toEqual(expect.any(String));
      for (const { Name } of Metrics) {
        const values = [line[Name]].flat();
        expect(values.every((value) => typeof value === "number" && Number.isFinite(value))).toBe(
          true,
        );
      }
    }
  }
  return found;
};

/** Dimensions and labels of the lines that have a metric. */
const of = (name: string) =>
  emf()
    .filter((line) => name in line)
    .map(({ _aws, ...members }) => ({
      dimensions: _aws.CloudWatchMetrics[0]?.Dimensions,
      ...members,
    }));

const call = async (
  path: string,
  more: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
) => {
  const event = lambdaEvent("httpApi", { path, ...more });
  return (await lambdaHttp(server)(event as never, lambdaContext() as never)) as {
    statusCode: number;
  };
};

test("an invocation writes its metrics before it ends, each line in CloudWatch's format", async () => {
  expect((await call("/orders/7")).statusCode).toBe(200);

  expect(of("http.server.request.duration")).toEqual([
    {
      dimensions: [["service", "http.route"]],
      service: "shop",
      "http.route": "/orders/:id",
      "http.request.method": "GET",
      "url.scheme": "https",
      "http.response.status_code": "200",
      "http.server.request.duration": expect.any(Number),
    },
  ]);
  expect(of("keelson.config.reads")).toMatchObject([
    { dimensions: [["service", "keelson.outcome"]], "keelson.outcome": "miss" },
  ]);
  expect(
    of("db.client.operation.duration").map((line) => line["db.operation.name" as never]),
  ).toContain("BatchGetItem");
  for (const line of emf()) expect(line._aws.CloudWatchMetrics[0]?.Namespace).toBe("shop-dev");
});

test("every metric has a unit that CloudWatch knows, and only the dimensions of the list", async () => {
  const key = {
    "idempotency-key": "1",
    authorization: `Bearer ${await app.token({ id: "ann-4711", tenantId: "acme-0815" })}`,
  };
  expect(
    (await call("/orders", { method: "POST", headers: key, body: { id: "1" } })).statusCode,
  ).toBe(201);
  await call("/orders", { method: "POST", headers: key, body: { id: "1" } });

  const allowed = new Map<string, readonly string[]>([
    ...metricList.map(
      (metric) => [metric.name, "dimensions" in metric ? metric.dimensions : []] as const,
    ),
    ["shop.order.value", ["plan"]] as const,
  ]);
  for (const line of emf()) {
    for (const { Dimensions, Metrics } of line._aws.CloudWatchMetrics) {
      for (const { Name, Unit } of Metrics) {
        expect(["Seconds", "Count"]).toContain(Unit);
        for (const dimension of Dimensions.flat())
          expect(["service", ...(allowed.get(Name) ?? [])]).toContain(dimension);
      }
    }
  }
  expect(of("keelson.claims").map((line) => line["keelson.outcome" as never])).toEqual([
    "taken",
    "replayed",
  ]);
  expect(of("shop.order.value").map((line) => line["plan" as never])).toEqual(["pro", "other"]);
  expect(JSON.stringify(emf())).not.toMatch(/ann-4711|acme-0815/);
});

test("queues, streams, schedules and sweeps write their metrics, too", async () => {
  const message = {
    jobId: "j1",
    name: "shop.order.pack",
    payload: { id: "1" },
    causedBy: "r1",
    origRequestId: "r1",
    tenantId: "acme",
  };
  const queue = app.env["KEELSON_JOB_QUEUE"] ?? "shop-jobs.fifo";
  const records = lambdaEvent("sqs", { queue, messages: [message] });
  expect(await lambdaQueue(server)(records, lambdaContext())).toEqual({ batchItemFailures: [] });
  expect(of("messaging.process.duration")).toMatchObject([
    {
      dimensions: [["service", "keelson.kind", "keelson.outcome"]],
      "keelson.kind": "job",
      "keelson.outcome": "processed",
      "keelson.handler": "shop.order.pack",
      "messaging.system.name": "aws.sqs",
    },
  ]);
  expect(of("keelson.message.attempts")).toMatchObject([
    { "keelson.kind": "job", "keelson.message.attempts": 1 },
  ]);

  await lambdaSweep(server)();
  expect(of("keelson.outbox.length")).toMatchObject([
    { dimensions: [["service"]], "keelson.outbox.length": expect.any(Number) },
  ]);
  await lambdaSchedule(server)();
  await lambdaOutbox(server)({ Records: [] }, lambdaContext());
});

test("a function has no page to scrape", async () => {
  expect((await call("/metrics")).statusCode).toBe(404);
});

test("a function without the option writes no metrics", async () => {
  const silent = buildServer({ features: [shop], dynamodb: { prefix: "shop" } });
  const event = lambdaEvent("httpApi", { path: "/orders/7" });
  expect(await lambdaHttp(silent)(event as never, lambdaContext() as never)).toMatchObject({
    statusCode: 200,
  });

  expect(emf()).toEqual([]);
});

test("a run that fails is measured as well", async () => {
  expect((await call("/peek", { headers: { authorization: "Bearer none" } })).statusCode).toBe(401);

  expect(of("http.server.request.duration")).toMatchObject([
    { "http.route": "/peek", "http.response.status_code": "401" },
  ]);
});

test("the metrics of the template's alarms are written with exactly their dimensions", async () => {
  const hanging = defineFeature("hanging", (r) => {
    r.write("thing.hang", {
      route: "POST /hang",
      access: access.tenant,
      handler: ({ signal }) =>
        new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason));
          timeIsOver();
        }),
    });
  });
  const features = [shop, hanging];
  const options = { metrics: {}, dynamodb: { prefix: "shop" } };
  const whole = buildServer({ features, ...options });
  const as = { id: "ann", tenantId: "acme" };
  const authorization = `Bearer ${await app.token(as)}`;
  const ask = (path: string, body?: unknown, context: object = lambdaContext()) => {
    const headers = { authorization, ...(body !== undefined && { "idempotency-key": "hang-1" }) };
    const event = lambdaEvent("httpApi", {
      path,
      headers,
      ...(body !== undefined && { method: "POST", body }),
    });
    return lambdaHttp(whole)(event as never, context as never);
  };
  for (const id of ["bad-event", "bad-job"]) {
    await app.call("shop.order.place", { id }, { as });
    await expect(app.settled()).rejects.toThrow();
  }
  const delivery = {
    ...app.jobs[0],
    jobId: "d1",
    name: "keelson.delivery.send",
    payload: { channel: "courier-pigeon", message: { to: "bad-address" }, key: "d1" },
  };
  const sqs = new SQSClient({
    endpoint: String(app.env["AWS_ENDPOINT_URL"]),
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  for (const [queue, messages] of [
    ["shop-events", app.events],
    ["shop-jobs.fifo", [...app.jobs, delivery]],
  ] as const) {
    const { Records } = lambdaEvent("sqs", { queue, messages: messages as never }); // the delivery is one
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: queue }));
    for (const record of Records) {
      const group = { MessageGroupId: record.messageId, MessageDeduplicationId: record.messageId };
      const fifo = queue.endsWith(".fifo") ? group : {};
      await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: record.body, ...fifo }));
      const { Messages } = await sqs.send(
        new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5 }),
      );
      record.receiptHandle = String(Messages?.[0]?.ReceiptHandle);
    }
    await lambdaQueue(whole)({ Records }, lambdaContext());
  }
  sqs.destroy();
  await lambdaSweep(whole)();
  await ask("/peek");
  await ask("/hang", {}, { ...lambdaContext(), getRemainingTimeInMillis: () => 30_000 });
  await expect
    .poll(() => of("keelson.claims").map((line) => line["keelson.outcome" as never]))
    .toContain("unknown");

  /** The dimensions of each metric that was written, by its name. */
  const written = emf().flatMap((line) =>
    line._aws.CloudWatchMetrics.flatMap(({ Dimensions, Metrics }) =>
      Metrics.flatMap(({ Name }) =>
        Dimensions.map((names) => [Name, names.map((name) => [name, line[name]])]),
      ),
    ),
  );
  const alarms = Object.values(templateOf(features, {}, options).Resources).flatMap(
    ({ Type, Properties = {} }) =>
      Type === "AWS::CloudWatch::Alarm" && !String(Properties["Namespace"]).startsWith("AWS/")
        ? [Object(Properties)]
        : [],
  );
  const missing = alarms
    .map(({ MetricName, Dimensions = [] }) => [
      MetricName,
      Dimensions.map((one: object) => Object.values(one)),
    ])
    .filter((alarm) => !written.some((one) => JSON.stringify(one) === JSON.stringify(alarm)));

  expect(alarms).toHaveLength(9);
  // What takes a store that fails, a step that was killed, or the end of a process: the compiler holds their labels to the list.
  expect(missing.map(([name]) => name)).toEqual([
    "keelson.steps",
    "keelson.drains",
    "keelson.config.reads",
  ]);
});
