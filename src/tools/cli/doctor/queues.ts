import { GetQueueAttributesCommand, GetQueueUrlCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { queueName } from "../../../aws/messaging/sqs-queue.ts";
import type { NeededQueue } from "../../infra/needs.ts";
import { failureName } from "./call-error.ts";
import { asked, type Check, doubtful, fine, following, type Outcome, wrong } from "./outcome.ts";
import type { Place } from "./place.ts";

export interface FoundQueue {
  readonly url: string;
  readonly arn: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface AskedQueue {
  /** Of its first check. */
  readonly name: string;
  readonly wanted: NeededQueue;
  readonly find: () => Promise<FoundQueue | undefined>;
}

/**
 * A duplicate can use up two receives; a message must use up its attempts before its claims expire.
 */
const [fewestReceives, mostReceives] = [3, 6];

export function askedQueue(client: SQSClient, place: Place, wanted: NeededQueue): AskedQueue {
  const { name } = wanted;
  return {
    name: `queue ${queueName(name)}`,
    wanted,
    find: asked(() => findQueue(client, place, name)),
  };
}

export function queueChecks(client: SQSClient, place: Place, queue: AskedQueue): Check[] {
  const { wanted } = queue;
  return [
    { name: queue.name, run: async () => queueOutcome(place, wanted, await queue.find()) },
    following(`${queue.name}: dead letters`, queue, (found) =>
      deadLetterOutcome(client, place, wanted, found),
    ),
  ];
}

async function findQueue(
  client: SQSClient,
  place: Place,
  nameOrUrl: string,
): Promise<FoundQueue | undefined> {
  const name = queueName(nameOrUrl);
  const { signal } = place;
  try {
    const url = nameOrUrl.includes("://")
      ? nameOrUrl
      : await place.call("GetQueueUrl", name, async () =>
          String(
            (
              await client.send(new GetQueueUrlCommand({ QueueName: name }), {
                abortSignal: signal,
              })
            ).QueueUrl,
          ),
        );
    const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["All"] });
    const { Attributes } = await place.call("GetQueueAttributes", name, () =>
      client.send(command, { abortSignal: signal }),
    );
    const attributes = Attributes as FoundQueue["attributes"]; // safe: every queue has attributes
    return { url, arn: String(attributes["QueueArn"]), attributes };
  } catch (error) {
    if (/QueueDoesNotExist|NonExistentQueue/.test(failureName(error) ?? "")) return undefined;
    throw error;
  }
}

function queueOutcome(place: Place, wanted: NeededQueue, found: FoundQueue | undefined): Outcome {
  const { name, isOrdered, variable, visibilitySeconds } = wanted;
  const own = queueName(name);
  const ordered = isOrdered ? ["FifoQueue=true"] : [];
  const create = (queueName: string) =>
    place.aws(
      "create-queue",
      ...[
        "--queue-name",
        queueName,
        "--attributes",
        [...ordered, `VisibilityTimeout=${visibilitySeconds}`].join(","),
      ],
    );
  if (found === undefined) return wrong("it does not exist", create(own));
  const { attributes, url } = found;
  if (isOrdered && attributes["FifoQueue"] !== "true") {
    const other = `${own}.fifo`;
    return wrong(
      "it is not FIFO, and cannot be made so",
      create(other),
      `export ${variable}=${other}`,
    );
  }
  const seconds = Number(attributes["VisibilityTimeout"]);
  if (seconds < visibilitySeconds) {
    return wrong(
      `its visibility timeout is ${seconds} s: a message is delivered again while it is being handled`,
      place.aws(
        "set-queue-attributes",
        "--queue-url",
        url,
        "--attributes",
        `VisibilityTimeout=${visibilitySeconds}`,
      ),
    );
  }
  return fine(
    `${isOrdered ? "FIFO, " : ""}visibility timeout ${seconds} s; a Lambda function needs six times its own`,
  );
}

async function deadLetterOutcome(
  client: SQSClient,
  place: Place,
  wanted: NeededQueue,
  found: FoundQueue,
): Promise<Outcome> {
  const { deadLetterTargetArn: arn, maxReceiveCount: count } = redriveOf(found);
  const set = (target: string, receives: number) =>
    place.aws(
      "set-queue-attributes",
      ...[
        "--queue-url",
        found.url,
        "--attributes",
        JSON.stringify({ RedrivePolicy: redrivePolicy(target, receives) }),
      ],
    );
  const create = (queueName: string) =>
    place.aws(
      "create-queue",
      ...[
        "--queue-name",
        queueName,
        ...(queueName.endsWith(".fifo") ? ["--attributes", "FifoQueue=true"] : []),
      ],
    );
  if (arn === undefined) {
    const dead = wanted.deadName;
    const deadArn = `${found.arn.slice(0, found.arn.lastIndexOf(":") + 1)}${dead}`;
    const message = "there is no dead-letter queue: failing messages are retried until they expire";
    return wrong(message, create(dead), set(deadArn, wanted.maxReceives));
  }
  const dead = arn.slice(arn.lastIndexOf(":") + 1);
  if ((await findQueue(client, place, dead)) === undefined) {
    return wrong(
      `its dead-letter queue ${dead} does not exist: failing messages are retried until they expire`,
      create(dead),
    );
  }
  const receives = Number(count);
  if (receives < fewestReceives) {
    return doubtful(
      `a message has ${receives} attempts, duplicates included, before it goes to ${dead}`,
      set(arn, wanted.maxReceives),
    );
  }
  if (receives > mostReceives) {
    const message = `a message has ${receives} attempts before it goes to ${dead}: consumers forget after 300 s that they are done`;
    return doubtful(message, set(arn, wanted.maxReceives));
  }
  return fine(`${dead}, after ${receives} attempts`);
}

function redriveOf({ attributes }: FoundQueue) {
  // Safe: SQS validates the policy.
  return JSON.parse(attributes["RedrivePolicy"] || "{}") as {
    readonly deadLetterTargetArn?: string;
    readonly maxReceiveCount?: number | string;
  };
}

function redrivePolicy(deadLetterTargetArn: string, maxReceiveCount: number): string {
  return JSON.stringify({ deadLetterTargetArn, maxReceiveCount });
}
