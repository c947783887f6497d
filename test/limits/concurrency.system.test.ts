// `concurrency` of jobs and consumers, over container workers and Lambda functions on the same queues.
import {
  DeleteMessageCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { buildServer, createTenantConfig, defineFeature } from "keelson";
import { type LambdaQueueHandler, lambdaQueue } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { z } from "zod";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { endPolls } from "../../src/embedded/queues/long-polls.ts";
import { openChecked } from "../../src/hosts/container/adapters.ts";
import { startWorkers, type Workers } from "../../src/hosts/container/workers.ts";

const running = new Map<string, number>();
const most = new Map<string, number>();
let done: string[] = [];

/** Counts the runs at a time: of each tenant, and in all. */
async function work(tenantId: string | undefined, id: string): Promise<void> {
  const counted = [`tenant ${tenantId}`, "all"];
  for (const key of counted) {
    running.set(key, (running.get(key) ?? 0) + 1);
    most.set(key, Math.max(most.get(key) ?? 0, running.get(key) ?? 0));
  }
  await new Promise((resolve) => setTimeout(resolve, 60));
  for (const key of counted) running.set(key, (running.get(key) ?? 0) - 1);
  done.push(`${tenantId} ${id}`);
}

const scans = defineFeature("scans", (r) => {
  const { scansAtOnce } = r.config({
    keys: {
      scansAtOnce: createTenantConfig("number", { default: 2, bounds: { min: 1, max: 50 } }),
    },
  });
  const concurrency = { perTenant: scansAtOnce, total: 3 };
  const input = z.object({ id: z.string() });
  const added = r.event("file.added", input);
  r.on(added, {
    name: "note",
    concurrency,
    handler: (ctx, { payload }) => work(ctx.user.tenantId, payload.id),
  });
  const scan = r.job("file.scan", {
    input,
    concurrency,
    handler: (ctx, { id }) => work(ctx.user.tenantId, id),
  });
  r.write("file.add", {
    handler: async (ctx, given) => {
      const { kind, ids } = given as { kind: "event" | "job"; ids: readonly string[] };
      for (const id of ids) {
        if (kind === "event") await ctx.publish(added, { id });
        else await ctx.enqueue(scan, { id });
      }
    },
  });
});
const server = () => buildServer({ features: [scans], log: { level: "debug" } });

let app: TestApp;
let closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  app = await startTestApp(server());
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  closing = [];
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await app.close();
  running.clear();
  most.clear();
  done = [];
});

/** Polls a queue for a function, like an event source mapping, until it is stopped. */
function pollFor(handler: LambdaQueueHandler, queueName: string) {
  const stopping = new AbortController();
  const sqs = new SQSClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const poll = async () => {
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: queueName }));
    while (!stopping.signal.aborted) {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 1,
          MessageSystemAttributeNames: ["All"],
        }),
      );
      if (Messages.length === 0) continue;
      const Records = Messages.map(
        ({ MessageId = "", ReceiptHandle = "", Body = "", ...more }) => ({
          messageId: MessageId,
          receiptHandle: ReceiptHandle,
          body: Body,
          attributes: more.Attributes as never, // as SQS gives them
          messageAttributes: {},
          md5OfBody: "",
          eventSource: "aws:sqs",
          eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queueName}`,
          awsRegion: "us-east-1",
        }),
      );
      const { batchItemFailures } = await handler({ Records }, {});
      const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
      for (const record of Records.filter(({ messageId }) => !failed.has(messageId)))
        await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: record.receiptHandle }));
    }
    sqs.destroy();
  };
  const polling = poll();
  closing.push(async () => {
    stopping.abort();
    await polling;
  });
}

async function startContainer(): Promise<void> {
  const runtime = createRuntime(server(), {
    variables: app.env,
    write: () => undefined,
    openAdapters: async (bound) => ({ ...(await openChecked(bound, app.env, "create")), endPolls }),
  });
  const workers: Workers = await startWorkers(runtime, new Set(["workers"]), 300);
  closing.push(async () => {
    workers.stop();
    await workers.finished();
    await runtime.close();
  });
}

test.each(["event", "job"] as const)(
  "%ss never run more often at a time than allowed, in two containers and two functions together, and each runs once",
  async (kind) => {
    await app.settled(); // makes the queues
    const ids = Array.from({ length: 6 }, (_, index) => `${index}`);
    await app.rows.put({
      scope: "tenant",
      key: "scans:config:scans-at-once",
      tenantId: "small",
      value: 1,
    });
    for (const tenantId of ["acme", "globex", "small"])
      await app.call("scans.file.add", { kind, ids }, { as: { id: "ann", tenantId } });
    const queueName =
      kind === "event"
        ? (app.env["KEELSON_EVENT_QUEUE"] ?? "keelson-events")
        : (app.env["KEELSON_JOB_QUEUE"] ?? "keelson-jobs.fifo");
    await startContainer();
    await startContainer();
    for (let copy = 0; copy < 2; copy++) pollFor(lambdaQueue(server()), queueName);

    const all = ["acme", "globex", "small"].flatMap((tenant) => ids.map((id) => `${tenant} ${id}`));
    await expect.poll(() => done.length, { timeout: 60_000, interval: 50 }).toBe(all.length);
    expect(done.toSorted()).toEqual(all.toSorted());
    const limits = { "tenant acme": 2, "tenant globex": 2, "tenant small": 1, all: 3 };
    for (const [limit, number] of Object.entries(limits))
      expect(most.get(limit)).toBeLessThanOrEqual(number);
    expect(most.get("all")).toBeGreaterThan(1);
  },
  90_000,
);
