import { GetQueueUrlCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { buildServer } from "keelson";
import { type LambdaQueueHandler, lambdaQueue } from "keelson/lambda";
import type { TestApp } from "keelson/testing";
import { expect, vi } from "vitest";
import type { Fixture } from "./fixture.ts";

/** The event in the queue, as Lambda would get it; it stays there. */
export async function receiveEvent(app: TestApp) {
  const sqs = new SQSClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  try {
    const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: "keelson-events" }));
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 5, VisibilityTimeout: 0 }),
    );
    expect(Messages).toHaveLength(1);
    const { MessageId = "", Body = "", ReceiptHandle = "" } = Messages[0] ?? {};
    return {
      messageId: MessageId,
      body: Body,
      receiptHandle: ReceiptHandle,
      attributes: {
        ApproximateReceiveCount: "1",
        SentTimestamp: "0",
        SenderId: "conformance",
        ApproximateFirstReceiveTimestamp: "0",
      },
      messageAttributes: {},
      md5OfBody: "",
      eventSource: "aws:sqs",
      eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:keelson-events",
      awsRegion: "us-east-1",
    };
  } finally {
    sqs.destroy();
  }
}

/** Lets `work` run on each of `count` workers at once, which share nothing but the stack of `app`. */
export async function withWorkers<Result>(
  { memos, probe }: Fixture,
  app: TestApp,
  count: number,
  work: (worker: LambdaQueueHandler) => Promise<Result>,
): Promise<Result[]> {
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  const stdout = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    const workers = Array.from({ length: count }, () =>
      lambdaQueue(buildServer({ features: [probe, memos] })),
    );
    return await Promise.all(workers.map(work));
  } finally {
    stdout.mockRestore();
    vi.unstubAllEnvs();
  }
}
