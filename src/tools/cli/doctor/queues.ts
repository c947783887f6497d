import { GetQueueAttributesCommand, GetQueueUrlCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { fairModeVariable } from "../../../aws/messaging/names.ts";
import { deadLetterSeconds, queueSeconds } from "../../../aws/messaging/rules.ts";
import { queueName } from "../../../aws/messaging/sqs-queue.ts";
import { serviceSizes } from "../../../base/sizes/service-sizes.ts";
import type { NeededQueue, Needs } from "../../infra/needs.ts";
import {
  after,
  asked,
  type Check,
  check,
  doubtful,
  fine,
  unlessMissing,
  wrong,
} from "./outcome.ts";
import type { Place, PlaceOf } from "./place.ts";

const { maxBytes } = serviceSizes.sqsMessage;
const largestMessage = `MaximumMessageSize=${maxBytes}`;
const longestRetention = `MessageRetentionPeriod=${deadLetterSeconds}`;

export interface FoundQueue {
  readonly url: string;
  readonly arn: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export type AskedQueue = ReturnType<typeof askedQueue>;

type Queues = PlaceOf<SQSClient>;

/** A duplicate can use up two receives. */
const fewestReceives = 3;

export function askedQueue(place: Queues, wanted: NeededQueue) {
  const { name } = wanted;
  const find = asked(() => findQueue(place, name));
  return { name: `queue ${queueName(name)}`, wanted, find };
}

export function queueChecks(place: Queues, queue: AskedQueue): Check[] {
  const { name, wanted } = queue;
  return [
    check(name, async () => queueOutcome(place, wanted, await queue.find())),
    check(`${name}: dead letters`, () =>
      after(queue, (found) => deadLetterOutcome(place, wanted, found)),
    ),
  ];
}

function findQueue({ send }: Queues, nameOrUrl: string): Promise<FoundQueue | undefined> {
  const name = queueName(nameOrUrl);
  return unlessMissing(async () => {
    const { QueueUrl } = nameOrUrl.includes("://")
      ? { QueueUrl: nameOrUrl }
      : await send(new GetQueueUrlCommand({ QueueName: name }), name);
    const command = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] });
    const { Attributes } = await send(command, name);
    // Safe cast: every queue has attributes.
    const attributes = Attributes as FoundQueue["attributes"];
    return { url: String(QueueUrl), arn: String(attributes["QueueArn"]), attributes };
  });
}

/** Messages that a version before the fair queue, or one with `KEELSON_FAIR_JOBS=off`, does not read. */
export function fairCheck(place: Queues, { mode, queue }: NonNullable<Needs["fair"]>): Check {
  return check(
    `queue ${queueName(queue.name)}: messages that older versions do not read`,
    async () => {
      const found = await findQueue(place, queue.name);
      const waiting = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
      ].reduce((sum, name) => sum + Number(found?.attributes[name] ?? 0), 0);
      if (waiting === 0) return fine("none");
      const says = `${waiting} messages, and ${fairModeVariable} is ${mode}`;
      if (mode === "off")
        return wrong(`${says}: nothing reads these`, `export ${fairModeVariable}=receive`);
      if (mode === "receive") return doubtful(`${says}: roll back further once the queue is empty`);
      return fine(`${says}: go back to receive before an older version`);
    },
  );
}

export function setAttributes(place: Place, url: string, attributes: string): string {
  return place.aws("set-queue-attributes", { "queue-url": url, attributes });
}

function queueOutcome(place: Place, wanted: NeededQueue, found: FoundQueue | undefined) {
  const { name, isOrdered, variable, visibilitySeconds } = wanted;
  const own = queueName(name);
  const attributes = `${isOrdered ? "FifoQueue=true," : ""}VisibilityTimeout=${visibilitySeconds},${largestMessage},MessageRetentionPeriod=${queueSeconds}`;
  const create = (queue: string) => place.aws("create-queue", { "queue-name": queue, attributes });
  if (found === undefined) return wrong("it does not exist", create(own));
  if (isOrdered && found.attributes["FifoQueue"] !== "true") {
    const other = `${own}.fifo`;
    const message = "it is not FIFO, and cannot be made so";
    return wrong(message, create(other), `export ${variable}=${other}`);
  }
  const seconds = Number(found.attributes["VisibilityTimeout"]);
  if (seconds < visibilitySeconds)
    return wrong(
      `its visibility timeout is ${seconds} s: a message is delivered again while it is being handled`,
      setAttributes(place, found.url, `VisibilityTimeout=${visibilitySeconds}`),
    );
  const small = sizeOutcome(place, found, "events and jobs");
  if (small !== undefined) return small;
  return fine(
    `${isOrdered ? "FIFO, " : ""}visibility timeout ${seconds} s; a Lambda function needs six times its own`,
  );
}

async function deadLetterOutcome(
  place: Queues,
  { deadName, maxReceives }: NeededQueue,
  found: FoundQueue,
) {
  const { deadLetterTargetArn: arn, maxReceiveCount: count } = redriveOf(found);
  const set = (deadLetterTargetArn: string) => {
    const policy = JSON.stringify({ deadLetterTargetArn, maxReceiveCount: maxReceives });
    return setAttributes(place, found.url, JSON.stringify({ RedrivePolicy: policy }));
  };
  const create = (name: string) => {
    const attributes = `${name.endsWith(".fifo") ? "FifoQueue=true," : ""}${largestMessage},${longestRetention}`;
    return place.aws("create-queue", { "queue-name": name, attributes });
  };
  if (arn === undefined) {
    const deadArn = `${found.arn.slice(0, found.arn.lastIndexOf(":") + 1)}${deadName}`;
    const message = "there is no dead-letter queue: failing messages are retried until they expire";
    return wrong(message, create(deadName), set(deadArn));
  }
  const dead = arn.slice(arn.lastIndexOf(":") + 1);
  const foundDead = await findQueue(place, dead);
  if (foundDead === undefined)
    return wrong(
      `its dead-letter queue ${dead} does not exist: failing messages are retried until they expire`,
      create(dead),
    );
  const receives = Number(count);
  if (receives < fewestReceives)
    return doubtful(
      `a message has ${receives} attempts, duplicates included, before it goes to ${dead}`,
      set(arn),
    );
  const small = sizeOutcome(place, foundDead, "dead letters");
  if (small !== undefined) return small;
  const seconds = Number(foundDead.attributes["MessageRetentionPeriod"] ?? deadLetterSeconds);
  if (seconds < deadLetterSeconds)
    return doubtful(
      `${dead} deletes dead letters after ${seconds} s, not after 14 days`,
      setAttributes(place, foundDead.url, longestRetention),
    );
  return fine(`${dead}, after ${receives} attempts`);
}

/** Queues that were created before 2026 take 256 KiB. */
function sizeOutcome(place: Place, { url, attributes }: FoundQueue, refused: string) {
  const bytes = Number(attributes["MaximumMessageSize"] ?? maxBytes);
  if (bytes >= maxBytes) return undefined;
  return doubtful(
    `its MaximumMessageSize is ${bytes}: it refuses larger ${refused}, up to keelson's ${maxBytes} bytes`,
    setAttributes(place, url, largestMessage),
  );
}

function redriveOf({ attributes }: FoundQueue) {
  // Safe cast: SQS validates the policy.
  return JSON.parse(attributes["RedrivePolicy"] || "{}") as {
    readonly deadLetterTargetArn?: string;
    readonly maxReceiveCount?: number | string;
  };
}
