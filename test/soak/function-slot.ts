import { setTimeout as sleep } from "node:timers/promises";
import { DeleteMessageCommand, GetQueueUrlCommand, type SQSClient } from "@aws-sdk/client-sqs";
import type { SQSBatchResponse } from "aws-lambda";
import { FunctionEnvironment } from "../support/runtime-api.ts";
import { receiveRecords } from "../support/sqs-batch.ts";
import type { SoakClock } from "./clock.ts";
import type { SweepEvent } from "./handler.ts";
import { type Host, sendToFunction } from "./host.ts";
import type { ProcessParts } from "./process-parts.ts";

/** An environment of the function, with its event source mappings and its rule for sweeps. */
export interface FunctionSlot extends Host {
  /** Lambda starts the runtime again. */
  signal(name: "SIGTERM" | "SIGKILL"): void;
  stop(): Promise<void>;
}

/** Interval of the rule. One minute on AWS. */
const sweepEveryMs = 5_000;

export interface FunctionParts extends ProcessParts {
  /** The module of `aws-lambda-ric`. */
  readonly runtime: string;
  readonly clock: SoakClock;
  /** A client of the stack, without faults: AWS polls for a function. */
  readonly sqs: SQSClient;
  readonly queues: readonly string[];
}

export async function startFunctionSlot(parts: FunctionParts): Promise<FunctionSlot> {
  const { runtime, env, clock, onLine, queues } = parts;
  const environment = await FunctionEnvironment.start({
    runtime,
    folder: import.meta.dirname,
    handler: "function.handler",
    env: { ...env, AWS_LAMBDA_FUNCTION_TIMEOUT: "30" },
    now: () => clock.now(),
    onLine,
  });
  const end = new AbortController();
  const work = Promise.all([
    ...queues.map((queue) => pollFor(environment, parts, queue, end.signal)),
    sweepFor(environment, end.signal),
  ]);
  work.catch(() => undefined); // `stop` throws it
  return {
    kind: "function",
    send: (request) => sendToFunction(environment, request),
    signal: (name) => environment.signal(name),
    stop: async () => {
      end.abort();
      await work;
      await environment.stop();
    },
  };
}

/** An event source mapping with ReportBatchItemFailures. */
async function pollFor(
  environment: FunctionEnvironment,
  { sqs }: FunctionParts,
  queue: string,
  end: AbortSignal,
): Promise<void> {
  const { QueueUrl } = await sqs.send(new GetQueueUrlCommand({ QueueName: queue }));
  while (!end.aborted) {
    const Records = await receiveRecords(sqs, queue, 1);
    if (Records.length === 0) continue;
    const { text, isWhole } = await environment.invoke({ Records });
    if (!isWhole) continue; // the messages become visible again
    const { batchItemFailures } = JSON.parse(text) as Partial<SQSBatchResponse>; // safe: read as partial
    if (batchItemFailures === undefined) continue; // the invocation failed
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    for (const { messageId, receiptHandle: ReceiptHandle } of Records)
      if (!failed.has(messageId))
        // The receipt may have expired: the message is then received again.
        await sqs
          .send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
          .catch(() => undefined);
  }
}

async function sweepFor(environment: FunctionEnvironment, end: AbortSignal): Promise<void> {
  const event: SweepEvent = { source: "aws.events" };
  while (!end.aborted) {
    await environment.invoke(event);
    await sleep(sweepEveryMs, undefined, { signal: end }).catch(() => undefined);
  }
}
