import {
  DeleteMessageCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import type { Server } from "keelson";
import { type LambdaQueueHandler, lambdaQueue } from "keelson/lambda";
import { startTestApp, type TestApp } from "keelson/testing";
import { vi } from "vitest";
import { createRuntime } from "../../src/app/server/create-runtime.ts";
import { endPolls } from "../../src/embedded/queues/long-polls.ts";
import { openChecked } from "../../src/hosts/container/adapters.ts";
import { startWorkers, type Workers } from "../../src/hosts/container/workers.ts";

/** Container workers and Lambda functions of one server, on the same queues. */
export interface BothHosts {
  readonly app: TestApp;
  readonly sqs: SQSClient;
  /** Returns the lines that containers and functions have logged under a message. */
  lines(msg: string): readonly Record<string, unknown>[];
  queueUrl(name: string): Promise<string>;
  startContainer(): Promise<void>;
  /** Polls a queue for a function, like an event source mapping. */
  startFunction(queueName: string): void;
  close(): Promise<void>;
}

/** Sets the variables of the stack in this process, until `close`. */
export async function startBothHosts(server: () => Server): Promise<BothHosts> {
  const app = await startTestApp(server());
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  const written: string[] = [];
  const write = (text: string | Uint8Array) => written.push(String(text)) > 0;
  vi.spyOn(process.stdout, "write").mockImplementation(write);
  const sqs = new SQSClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const queueUrl = async (QueueName: string) =>
    String((await sqs.send(new GetQueueUrlCommand({ QueueName }))).QueueUrl);
  const stopping = new AbortController();
  const closing: (() => Promise<unknown>)[] = [];
  const hosts: BothHosts = {
    app,
    sqs,
    lines: (msg) =>
      written
        .flatMap((text) => text.split("\n"))
        .filter((line) => line.includes(`"msg":"${msg}"`))
        .map((line) => JSON.parse(line)),
    queueUrl,
    startContainer: async () => {
      const runtime = createRuntime(server(), {
        variables: app.env,
        write: (line) => void written.push(line),
        openAdapters: async (bound) => ({
          ...(await openChecked(bound, app.env, "create")),
          endPolls,
        }),
      });
      const workers: Workers = await startWorkers(runtime, new Set(["workers"]), 300);
      closing.push(async () => {
        workers.stop();
        await workers.finished();
        await runtime.close();
      });
    },
    startFunction: (queueName) => {
      const handler = lambdaQueue(server());
      const poll = async () => {
        const QueueUrl = await queueUrl(queueName);
        while (!stopping.signal.aborted) await invoke(sqs, QueueUrl, queueName, handler);
      };
      const polling = poll();
      closing.push(() => polling);
    },
    close: async () => {
      stopping.abort();
      for (const close of closing.toReversed()) await close();
      sqs.destroy();
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      await app.close();
    },
  };
  return hosts;
}

/** Receives once, and deletes the messages that the function has not reported as failed. */
async function invoke(
  sqs: SQSClient,
  QueueUrl: string,
  queueName: string,
  handler: LambdaQueueHandler,
): Promise<void> {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds: 1,
      MessageSystemAttributeNames: ["All"],
    }),
  );
  if (Messages.length === 0) return;
  const Records = Messages.map(({ MessageId = "", ReceiptHandle = "", Body = "", ...more }) => ({
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: more.Attributes as never, // as SQS gives them
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queueName}`,
    awsRegion: "us-east-1",
  }));
  const { batchItemFailures } = await handler({ Records }, {});
  const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
  for (const { receiptHandle } of Records.filter(({ messageId }) => !failed.has(messageId)))
    await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: receiptHandle }));
}
