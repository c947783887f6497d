import { GetQueueUrlCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { buildServer, serverInternals } from "../../src/app/server/server.ts";
import { lambdaQueue } from "../../src/hosts/lambda/index.ts";
import { serverTemplate } from "../../src/tools/infra/server-template.ts";
import { lambdaContext, startTestApp, type TestApp } from "../../src/tools/testing/index.ts";
import { type RecordedCall, requestsOf } from "../iam/recorded-requests.ts";
import { type Resources, roleOf } from "../iam/resolved.ts";
import { account, loadSimulator } from "../iam/simulator.ts";
import { storedEvent, uploads, world } from "../received/fixture.ts";
import { type StubAws, stubAws } from "../support/stub-aws.ts";

// The role that `keelson infra` makes, asked for every call with which a function receives events of others.

const server = () => buildServer({ features: [uploads] });
const calls: Record<string, unknown>[] = [];
let app: TestApp;
let proxy: StubAws;
let queueUrl: string;
let sqs: SQSClient;

beforeAll(async () => {
  app = await startTestApp(server());
  const target = app.env["AWS_ENDPOINT_URL"] ?? "";
  proxy = await stubAws({ "*": (input) => void calls.push(input) }, { target });
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  sqs = new SQSClient({ endpoint: target, region: "us-east-1" });
  const { QueueUrl = "" } = await sqs.send(
    new GetQueueUrlCommand({ QueueName: "keelson-received" }),
  );
  queueUrl = QueueUrl;
  vi.stubEnv("AWS_ENDPOINT_URL", proxy.endpoint);
  // Addresses, as in a deployed function: a name would have to be looked up.
  vi.stubEnv("KEELSON_RECEIVED_QUEUE", QueueUrl);
  vi.stubEnv("KEELSON_JOB_QUEUE", QueueUrl.replace("-received", "-jobs.fifo"));
  vi.stubEnv("KEELSON_EVENT_QUEUE", QueueUrl.replace("-received", "-events"));
});
afterAll(async () => {
  vi.unstubAllEnvs();
  sqs?.destroy();
  proxy?.close();
  await app?.close();
});

const imports = (name: string) =>
  storedEvent("", { source: "imports", "detail-type": "Import Asked", detail: { name } });

test("the role of the queues' function allows all that receiving an event asks for, and nothing else of the queue", async () => {
  world.handle = async (ctx) => {
    if (ctx.user.tenantId === undefined) return;
    await ctx.enqueue(uploads.scan, { key: "acme/1" });
    const Item = { ...uploads.table.key(ctx, "stored", "1"), size: 1 };
    await ctx.commit([{ Put: { TableName: uploads.table.name, Item } }], undefined);
  };
  // It is done; it does not fit; two of which one is above a rate limit.
  const bodies = [storedEvent("acme/1"), storedEvent(""), imports("a"), imports("b")];
  const handler = lambdaQueue(server());
  const Records = [];
  for (const [index, body] of bodies.entries()) {
    const MessageBody = JSON.stringify(body);
    await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, MessageBody }));
    Records.push({
      ...{ messageId: `m${index}`, body: MessageBody, receiptHandle: "r" },
      attributes: { ApproximateReceiveCount: "1", SentTimestamp: "1" },
      eventSourceARN: `arn:aws:sqs:eu-west-1:${account}:keelson-received`,
    });
  }
  // Safe cast: the function reads nothing else.
  await handler({ Records } as unknown as Parameters<typeof handler>[0], lambdaContext());
  const recorded = calls.map((input, index): RecordedCall => {
    const operation = proxy.asked[index];
    const isOfQueue = "QueueUrl" in input || "QueueName" in input;
    return { target: `${isOfQueue ? "AmazonSQS" : "DynamoDB_20120810"}.${operation}`, input };
  });
  const targets = ["AmazonSQS.SendMessage", "AmazonSQS.GetQueueUrl", "DynamoDB_20120810.PutItem"];
  expect(recorded.map(({ target }) => target)).toEqual(expect.arrayContaining(targets));
  // Safe cast: a template has these.
  const resources = serverTemplate(serverInternals(server()), { stage: "dev" })
    .Resources as Resources;
  const identity = roleOf("QueueRole", resources, "keelson").allows;
  const simulate = await loadSimulator();
  const by = { arn: `arn:aws:sts::${account}:assumed-role/QueueRole/run` };
  for (const call of recorded)
    for (const request of requestsOf(call, () => ({ partitionKey: "pk" })))
      expect([request, await simulate(request, by, { identity })]).toEqual([request, true]);
  const purge = {
    ...{ action: "sqs:PurgeQueue", context: {} },
    resource: `arn:aws:sqs:eu-west-1:${account}:keelson-received`,
  };
  expect(await simulate(purge, by, { identity })).toBe(false);
});
