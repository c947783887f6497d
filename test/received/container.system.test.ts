import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import { GetQueueUrlCommand, SQSClient } from "@aws-sdk/client-sqs";
import { buildServer, defineFeature } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { openChecked } from "../../src/hosts/container/adapters.ts";
import { startWorkers } from "../../src/hosts/container/workers.ts";
import { waitFor } from "../support/wait-for.ts";

const runs: string[] = [];
const prints = defineFeature("prints", (r) => {
  r.receive("print.stored", {
    source: "aws.s3",
    detailType: "Object Created",
    input: z.object({ key: z.string() }),
    tenant: ({ detail }) => detail.key.split("/")[0],
    handler: async (ctx, { detail }) => void runs.push(`${ctx.user.tenantId} ${detail.key}`),
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [prints] }));
});
afterAll(() => app.close());

const place = () => ({
  endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});

/** A process that polls the queue, as a container does. */
async function startProcess() {
  const variables = app.env;
  const runtime = createRuntime(buildServer({ features: [prints] }), {
    ...{ variables, environment: "test", write: () => undefined },
    openAdapters: (opening) => openChecked(opening, variables, "create"),
  });
  const workers = await startWorkers(runtime, new Set(["workers"]));
  return async () => {
    workers.stop();
    await workers.finished();
    await runtime.close();
  };
}

test("the workers of two containers run each event on the default bus once, and need no other queue", async () => {
  const stops = [await startProcess(), await startProcess()];
  const bus = new EventBridgeClient(place());
  const queues = new SQSClient(place());
  try {
    const names = Array.from({ length: 20 }, (_, index) => `acme/${index}`);
    const entries = names.map((key) => ({
      ...{ Source: "aws.s3", DetailType: "Object Created" },
      Detail: JSON.stringify({ key }),
    }));
    for (const Entries of [entries.slice(0, 10), entries.slice(10)])
      await bus.send(new PutEventsCommand({ Entries }));
    await waitFor(() => expect(runs.length).toBeGreaterThanOrEqual(20));
    expect(runs.sort()).toEqual(names.map((key) => `acme ${key}`).sort());
    for (const QueueName of ["keelson-events", "keelson-jobs.fifo"])
      await expect(queues.send(new GetQueueUrlCommand({ QueueName }))).rejects.toThrow();
  } finally {
    for (const stop of stops) await stop();
    bus.destroy();
    queues.destroy();
  }
});
