import {
  ChangeMessageVisibilityCommand,
  GetQueueUrlCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { PermanentError } from "../../base/errors/errors.ts";
import { lambdaEvent, startTestApp, type TestApp } from "../../tools/testing/index.ts";
import { type LambdaQueueHandler, lambdaQueue } from "./workers.ts";

declare module "../../base/types/names.ts" {
  interface Events {
    "batch.sent": { name: string };
  }
  interface Jobs {
    "batches.batch.work": { name: string; group: string };
  }
}

let runs: string[] = [];
const broken = new Set<string>();
const run = (name: string) => {
  runs.push(name);
  if (name.startsWith("never")) throw new PermanentError(`${name} can never be done`);
  if (broken.has(name)) throw new Error(`${name} is broken`);
};
const batches = defineFeature("batches", (r) => {
  r.event("batch.sent", z.object({ name: z.string() }));
  r.on("batch.sent", { name: "note", handler: async (_ctx, { payload }) => run(payload.name) });
  r.job("batch.work", {
    input: z.object({ name: z.string(), group: z.string() }),
    order: ({ group }) => group,
    handler: async (_ctx, { name }) => run(name),
  });
});
const build = () => buildServer({ features: [batches], log: { level: "debug" } });
const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
const event = (name: string, eventId = name) =>
  JSON.stringify({
    version: "0",
    "detail-type": "batch.sent",
    source: "keelson",
    detail: {
      kind: "shared",
      type: "batch.sent",
      eventId,
      payload: { name, requestId: "r1" },
      ...cause,
    },
  });
const job = (name: string, group = name) =>
  JSON.stringify({ jobId: name, name: "batches.batch.work", payload: { name, group }, ...cause });

let app: TestApp;
let sqs: SQSClient;
let queue: LambdaQueueHandler;
let lines: Record<string, unknown>[] = [];
let names: { events: string; jobs: string };

beforeAll(async () => {
  app = await startTestApp(build());
  await app.settled(); // makes the queues
  sqs = new SQSClient({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  names = {
    events: app.env["KEELSON_EVENT_QUEUE"] ?? "keelson-events",
    jobs: app.env["KEELSON_JOB_QUEUE"] ?? "keelson-jobs.fifo",
  };
});
afterAll(async () => {
  sqs.destroy();
  await app.close();
});
beforeEach(() => {
  runs = [];
  lines = [];
  broken.clear();
  for (const [name, value] of Object.entries(app.env)) vi.stubEnv(name, value);
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    lines.push(
      ...String(text)
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    );
    return true;
  });
  queue = lambdaQueue(build());
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

const urlOf = async (name: string) =>
  (await sqs.send(new GetQueueUrlCommand({ QueueName: name }))).QueueUrl;

/** Sends bodies, and receives them as the event source mapping would; what an earlier test handed back stays in the queue. */
async function received(
  kind: "events" | "jobs",
  bodies: readonly string[],
  queueName = names[kind],
) {
  const QueueUrl = await urlOf(names[kind]);
  const sent = new Set<string | undefined>();
  for (const body of bodies) {
    const ordered =
      kind === "jobs"
        ? {
            MessageGroupId: String(
              (JSON.parse(body) as { payload: { group: string } }).payload.group,
            ),
            MessageDeduplicationId: crypto.randomUUID(),
          }
        : {};
    sent.add(
      (await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: body, ...ordered })))
        .MessageId,
    );
  }
  const messages = new Map<string, Parameters<LambdaQueueHandler>[0]["Records"][number]>();
  while (messages.size < bodies.length) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl,
        MaxNumberOfMessages: 10,
        WaitTimeSeconds: 1,
        MessageSystemAttributeNames: ["All"],
      }),
    );
    for (const { MessageId = "", ReceiptHandle = "", Body = "", Attributes = {} } of Messages) {
      if (!sent.has(MessageId)) continue;
      messages.set(MessageId, {
        messageId: MessageId,
        receiptHandle: ReceiptHandle,
        body: Body,
        attributes: Attributes as never, // as SQS gives them
        messageAttributes: {},
        md5OfBody: "",
        eventSource: "aws:sqs",
        eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${queueName}`,
        awsRegion: "us-east-1",
      });
    }
  }
  return [...messages.values()];
}

/** The bodies that have to come again. */
async function invoke(
  records: Parameters<LambdaQueueHandler>[0]["Records"],
  remainingMs = 30_000,
): Promise<string[]> {
  const { batchItemFailures } = await queue(
    { Records: records },
    { getRemainingTimeInMillis: () => remainingMs },
  );
  return batchItemFailures.map(
    ({ itemIdentifier }) =>
      records.find(({ messageId }) => messageId === itemIdentifier)?.body ?? "?",
  );
}

/** Seconds for which the messages of these records are invisible from now on, by body, in order. */
function handedBack(records: Parameters<LambdaQueueHandler>[0]["Records"]) {
  const seen: [string, number | undefined][] = [];
  const send = SQSClient.prototype.send;
  vi.spyOn(SQSClient.prototype, "send").mockImplementation(function (this: SQSClient, command) {
    if (command instanceof ChangeMessageVisibilityCommand) {
      const { ReceiptHandle, VisibilityTimeout } = command.input;
      const record = records.find(({ receiptHandle }) => receiptHandle === ReceiptHandle);
      seen.push([record?.body ?? "?", VisibilityTimeout]);
    }
    return Reflect.apply(send, this, [command]);
  });
  return seen;
}

test("an event of another source fails the invocation, and names the fix", async () => {
  const others = [
    undefined,
    {},
    { Records: "many" },
    { Records: [{ s3: {} }] },
    { Records: [null] },
    lambdaEvent("dynamoDbStream", { rows: [{ pk: "shard#1", sk: "1" }] }),
  ];
  for (const other of others)
    await expect(queue(other as never, {} as never)).rejects.toThrow(
      "check the function's trigger",
    );
});

describe("a batch of events", () => {
  test("runs each event once, and acknowledges duplicates in the same batch and in later ones", async () => {
    const records = await received("events", [event("a", "dup"), event("a", "dup"), event("b")]);
    expect(await invoke(records)).toEqual([]);
    expect(runs.sort()).toEqual(["a", "b"]);
    expect(await invoke(await received("events", [event("a", "dup")]))).toEqual([]);
    expect(runs).toHaveLength(2);
  });

  test("logs a line for each run, with the age of its message if the record has a timestamp", async () => {
    const [record, other] = await received("events", [event("aged"), event("ageless")]);
    if (record === undefined || other === undefined) throw new Error("two were sent");
    const { SentTimestamp: _left, ...attributes } = other.attributes;
    expect(
      await invoke([record, { ...other, attributes: attributes as typeof other.attributes }]),
    ).toEqual([]);
    const ended = lines.filter(({ msg }) => msg === "event.completed");
    expect(
      ended.map(({ outcome, attempt, ageMs }) => [outcome, attempt, typeof ageMs]).sort(),
    ).toEqual([
      ["processed", 1, "number"],
      ["processed", 1, "undefined"],
    ]);
  });

  test("of a fair queue goes on after a failure in its group, and dead-letters only what can never succeed", async () => {
    broken.add("broken");
    const records = await received("events", [
      event("broken"),
      event("behind"),
      event("never-fair"),
      event("last"),
    ]);
    const fair = records.map((record) => ({
      ...record,
      attributes: { ...record.attributes, MessageGroupId: "acme" },
    }));
    expect(await invoke(fair)).toEqual([event("broken")]);
    expect(runs.sort()).toEqual(["behind", "broken", "last", "never-fair"]);
    expect(lines.filter(({ msg }) => msg === "queue.dead_lettered")).toMatchObject([
      { eventId: "never-fair" },
    ]);
    expect(lines.filter(({ msg }) => msg === "queue.dead_letter_failed")).toEqual([]);
  });

  test("reports only the failed events, and dead-letters those that can never succeed, with one line each", async () => {
    broken.add("broken");
    const poison = '{"detail-type":"x","detail":{"kind":"private"}}';
    const records = await received("events", [
      event("c"),
      event("broken"),
      poison,
      event("never-1"),
    ]);
    expect(await invoke(records)).toEqual([event("broken")]);
    expect(runs.sort()).toEqual(["broken", "c", "never-1"]);
    const deadLettered = lines.filter(({ msg }) => msg === "queue.dead_lettered");
    expect(deadLettered.map(({ reason }) => reason).sort()).toEqual([
      "its kind is not shared",
      "never-1 can never be done",
    ]);
    expect(deadLettered.find(({ reason }) => reason === "never-1 can never be done")).toMatchObject(
      {
        level: "error",
        event: "batch.sent",
        eventId: "never-1",
        origRequestId: "r1",
      },
    );
    expect(lines.find(({ msg }) => msg === "queue.retry")).toMatchObject({
      reason: "broken is broken",
      afterMs: 1_000,
      receives: 1,
    });
  });

  test("dead-letters a job, unless the queue is for both", async () => {
    expect(await invoke(await received("events", [job("stray-job")]))).toEqual([]);
    const [line] = lines.filter(({ msg }) => msg === "queue.dead_lettered");
    expect([runs, line?.["reason"]]).toEqual([[], "a job is not taken from the queue of events"]);
    vi.stubEnv("KEELSON_EVENT_QUEUE", names.events);
    vi.stubEnv("KEELSON_JOB_QUEUE", String(await urlOf(names.events)));
    queue = lambdaQueue(build());
    expect(await invoke(await received("events", [job("welcome-job"), event("welcome")]))).toEqual(
      [],
    );
    expect(runs.sort()).toEqual(["welcome", "welcome-job"]);
    expect(lines.filter(({ msg }) => msg === "queue.kind_unknown")).toMatchObject([
      { queue: names.events },
    ]);
  });

  test("is handed back without a run when no time is left", async () => {
    const records = await received("events", [event("late")]);
    const seen = handedBack(records);
    expect(await invoke(records, 900)).toEqual([event("late")]);
    expect(runs).toEqual([]);
    expect(seen).toEqual([[event("late"), 0]]);
    const expired = records.map((record) => ({ ...record, receiptHandle: "expired" }));
    expect(await invoke(expired, 900)).toEqual([event("late")]);
  });

  test("is answered before the function's timeout if SQS does not take it back in time", async () => {
    const records = await received("events", [event("held")]);
    const send = SQSClient.prototype.send;
    vi.spyOn(SQSClient.prototype, "send").mockImplementation(function (this: SQSClient, command) {
      if (command instanceof ChangeMessageVisibilityCommand) return new Promise<never>(() => {});
      return Reflect.apply(send, this, [command]);
    });
    expect(await invoke(records, 250)).toEqual([event("held")]);
    expect(await invoke(records, 100)).toEqual([event("held")]);
    expect(runs).toEqual([]);
  });

  test("makes its messages visible without a limit if the invocation has none", async () => {
    broken.add("endless-1");
    const bodies = ["endless-1", "endless-2"].map((name) => job(name, "endless"));
    const records = await received("jobs", bodies);
    const seen = handedBack(records);
    const { batchItemFailures } = await queue({ Records: records }, {});
    expect(batchItemFailures).toHaveLength(2);
    expect(seen.at(-1)).toEqual([bodies[1], 2]);
  });

  test("runs once when two processes receive it, and at most one of them hands it back", async () => {
    const other = lambdaQueue(build());
    const records = await received("events", [event("shared-run")]);
    const again = records.map((record) => ({ ...record }));
    const [first, second] = await Promise.all([
      invoke(records),
      other({ Records: again }, { getRemainingTimeInMillis: () => 30_000 }),
    ]);
    // Whoever came second skipped it, or handed it back: it ran once.
    expect(runs).toEqual(["shared-run"]);
    expect(first.length + second.batchItemFailures.length).toBeLessThanOrEqual(1);
  });
});

describe("an ordered batch of jobs", () => {
  test("keeps each group's order: hands back the jobs behind a failed one, and goes on with other groups", async () => {
    broken.add("one-1");
    const records = await received("jobs", [
      job("one-1", "one"),
      job("one-2", "one"),
      job("two-1", "two"),
      job("two-2", "two"),
    ]);
    expect((await invoke(records)).sort()).toEqual([job("one-1", "one"), job("one-2", "one")]);
    expect(runs.filter((name) => name.startsWith("one"))).toEqual(["one-1"]);
    expect(runs.filter((name) => name.startsWith("two"))).toEqual(["two-1", "two-2"]);
  });

  test("makes the jobs behind a failed one visible a second after it, so that its group goes on", async () => {
    broken.add("slow-1");
    const bodies = ["slow-1", "slow-2", "slow-3"].map((name) => job(name, "slow"));
    const records = await received("jobs", bodies);
    const seen = handedBack(records);
    expect(await invoke(records)).toEqual(bodies);
    expect(seen).toEqual([
      [bodies[0], 1],
      [bodies[1], 2],
      [bodies[2], 2],
    ]);
  });

  test("makes all jobs of a group visible when no time is left, and none overtakes another", async () => {
    const bodies = ["short-1", "short-2"].map((name) => job(name, "short"));
    const records = await received("jobs", bodies);
    const seen = handedBack(records);
    expect(await invoke(records, 900)).toEqual(bodies);
    expect(seen).toEqual([
      [bodies[0], 0],
      [bodies[1], 0],
    ]);
    expect(runs).toEqual([]);
  });

  test("is handled even when the server does not name its queue, with one warning", async () => {
    const other = `${names.jobs.slice(0, -5)}-dead.fifo`;
    expect(await invoke(await received("jobs", [job("elsewhere")], other))).toEqual([]);
    expect(await invoke(await received("jobs", [job("elsewhere-2")], other))).toEqual([]);
    expect(runs).toEqual(["elsewhere", "elsewhere-2"]);
    expect(lines.filter(({ msg }) => msg === "queue.kind_unknown")).toMatchObject([
      { level: "warn", queue: other },
    ]);
  });

  test("dead-letters an event", async () => {
    const stray = JSON.parse(event("stray")) as { payload?: object };
    stray.payload = { group: "stray" };
    expect(await invoke(await received("jobs", [JSON.stringify(stray)]))).toEqual([]);
    expect(runs).toEqual([]);
    const [line] = lines.filter(({ msg }) => msg === "queue.dead_lettered");
    expect(line?.["reason"]).toBe("an event is not taken from the queue of jobs");
    expect(lines.filter(({ msg }) => msg === "queue.kind_unknown")).toEqual([]);
  });

  test("reports no failures when it is empty", async () => {
    expect(await queue({ Records: [] }, {})).toEqual({ batchItemFailures: [] });
  });
});
