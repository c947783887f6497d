import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { access, buildServer, defineFeature } from "../../src/index.ts";
import { startTestApp, type TestApp } from "../../src/tools/testing/index.ts";

const minute = 60_000;
const input = z.object({ name: z.string() });
let runs: string[] = [];

const errands = defineFeature("errands", (r) => {
  const run = r.job("errand.run", {
    input,
    handler: async ({ user }, { name }) => void runs.push(`${user.tenantId} ${name}`),
  });
  const file = r.job("errand.file", {
    input,
    order: () => "drawer",
    handler: async ({ user }, { name }) => void runs.push(`${user.tenantId} ordered ${name}`),
  });
  const asked = z.object({
    name: z.string(),
    kind: z.enum(["run", "file"]).default("run"),
    afterCommit: z.boolean().default(true),
    fails: z.boolean().default(false),
    later: z.boolean().default(false),
  });
  r.write("errand.ask", {
    route: "POST /errands",
    access: access.authenticated,
    input: asked,
    handler: async (ctx, { name, kind, afterCommit, fails, later }) => {
      const options = later ? { delaySeconds: 60 } : { afterCommit };
      const { jobId } = await ctx.enqueue(kind === "run" ? run : file, { name }, options);
      if (fails) throw new Error("after enqueueing");
      return { jobId };
    },
  });
});

let app: TestApp;
let sqs: SQSClient;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [errands] }));
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  sqs = new SQSClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials,
  });
});
afterAll(async () => {
  sqs.destroy();
  await app.close();
});
beforeEach(() => {
  runs = [];
});
afterEach(() => app.settled());

const ask = async (body: object, tenantId = "acme") => {
  const response = await app.fetch("/errands", {
    method: "POST",
    as: { id: "ann", tenantId },
    body,
  });
  return response.status;
};
/** Groups of the messages that a queue shows, which stay visible. */
const groupsIn = async (queue: string) => {
  const command = new ReceiveMessageCommand({
    QueueUrl: `${app.env["AWS_ENDPOINT_URL"]}/000000000000/${queue}`,
    MaxNumberOfMessages: 10,
    VisibilityTimeout: 0,
    MessageSystemAttributeNames: ["MessageGroupId"],
  });
  const { Messages = [] } = await sqs.send(command);
  return Messages.map(({ Attributes }) => Attributes?.["MessageGroupId"]);
};

test("a job carries its tenant as the message group of a standard queue", async () => {
  await ask({ name: "grouped" });
  await ask({ name: "grouped" }, "a tenant");
  const hashed = expect.stringMatching(/^sha256:[\w-]{43}$/);
  expect(await groupsIn("keelson-jobs")).toEqual(["acme", hashed]);
  expect(await groupsIn("keelson-jobs.fifo")).toEqual([]);
  await app.settled();
  expect(runs.toSorted()).toEqual(["a tenant grouped", "acme grouped"]);
});

test("a job with an order stays on the FIFO queue, in its order", async () => {
  for (const name of ["1", "2", "3"]) await ask({ name, kind: "file" });
  expect(await groupsIn("keelson-jobs")).toEqual([]);
  expect(await groupsIn("keelson-jobs.fifo")).toHaveLength(3);
  await app.settled();
  expect(runs).toEqual(["acme ordered 1", "acme ordered 2", "acme ordered 3"]);
});

describe("equal jobs", () => {
  test("of the 5 minutes from the first are one, though it is done", async () => {
    await ask({ name: "once" });
    await app.settled();
    app.clock.advance(4.9 * minute);
    await ask({ name: "once" });
    await app.settled();
    expect(runs).toEqual(["acme once"]);
  });

  test("are one, and later another, at any length of the queue", async () => {
    for (let asked = 0; asked < 3; asked += 1) await ask({ name: "waiting" });
    app.clock.advance(5 * minute);
    for (let asked = 0; asked < 3; asked += 1) await ask({ name: "waiting" });
    expect(await groupsIn("keelson-jobs")).toEqual(["acme", "acme"]);
    await app.settled();
    expect(runs).toEqual(["acme waiting", "acme waiting"]);
  });

  test("that are enqueued at the same time are one", async () => {
    await Promise.all(Array.from({ length: 10 }, () => ask({ name: "together" })));
    await Promise.all(
      Array.from({ length: 5 }, () => ask({ name: "together", afterCommit: false })),
    );
    await app.settled();
    expect(runs).toEqual(["acme together"]);
    const merged = app.logs.filter(
      ({ msg, job }) => msg === "job.merged" && job === "errands.errand.run",
    );
    expect(merged.length).toBeGreaterThanOrEqual(14);
  });

  test("of two tenants are two", async () => {
    await ask({ name: "shared" });
    await ask({ name: "shared" }, "zenith");
    await app.settled();
    expect(runs.toSorted()).toEqual(["acme shared", "zenith shared"]);
  });

  test("that are due later are two", async () => {
    for (let asked = 0; asked < 2; asked += 1) await ask({ name: "later", later: true });
    app.clock.advance(minute);
    await app.settled();
    expect(runs).toEqual(["acme later", "acme later"]);
  });

  test("do not merge with one whose run failed and was never committed", async () => {
    expect(await ask({ name: "failed", fails: true })).toBe(500);
    await ask({ name: "failed" });
    await app.settled();
    expect(runs).toEqual(["acme failed"]);
  });
});
