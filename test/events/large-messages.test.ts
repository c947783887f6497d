import { EventBridgeClient, PutEventsCommand } from "@aws-sdk/client-eventbridge";
import {
  CreateQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { ScanCommand } from "@aws-sdk/lib-dynamodb";
import { access, buildServer, defineFeature, type PipelineContext } from "keelson";
import { startTestApp, type TestApp } from "keelson/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";

declare module "keelson" {
  interface Events {
    "film.cut": { text: string };
    "film.kept": { text: string };
  }
  interface Jobs {
    "films.film.show": { text: string };
  }
  interface Channels {
    cinema: { text: string };
  }
}

const mib = 1_048_576;
const text = z.object({ text: z.string() });
let work: (ctx: PipelineContext) => Promise<unknown> = async () => undefined;
let heard: string[] = [];
const hear = async (what: string, { text }: { text: string }) =>
  void heard.push(`${what} ${text.length}`);

const films = defineFeature("films", (r) => {
  const table = r.table("films", { partitionKey: "pk", tenant: false });
  r.event("film.cut", text);
  r.event("film.kept", text, { keepDays: 1 });
  r.on("film.cut", { name: "hear", handler: (_ctx, { payload }) => hear("event", payload) });
  r.job("film.show", { input: text, handler: (_ctx, payload) => hear("job", payload) });
  r.channel("cinema", { input: text, send: (_ctx, message) => hear("delivery", message) });
  r.write("film.do", {
    route: "POST /do",
    access: access.authenticated,
    once: false,
    handler: async (ctx) => {
      await work(ctx);
      return ctx.commit([{ Put: { TableName: table.name, Item: { pk: "f" } } }], {});
    },
  });
});

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp(buildServer({ features: [films] }), { environment: "development" });
});
afterAll(() => app.close());
beforeEach(() => {
  heard = [];
});

const ann = { id: "ann", tenantId: "acme" };
const post = async (given: typeof work) => {
  work = given;
  return (await app.fetch("/do", { body: {}, as: ann })).status;
};
const lastError = () => app.logs.findLast(({ msg }) => msg === "request.failed")?.["stack"];
const outbox = async () => {
  const { db } = await app.ctx(ann);
  const TableName = app.env["KEELSON_TABLE_OUTBOX"] ?? "keelson-outbox";
  return (await db.send(new ScanCommand({ TableName, ConsistentRead: true }))).Items ?? [];
};
/** Three bytes a character, so that bytes count and not characters. */
const euros = (bytes: number) => ({ text: "€".repeat(bytes / 3) });

describe("a message of almost 1 MiB", () => {
  test("reaches its handler with the commit of its run, and its rows are deleted", async () => {
    const payload = euros(1_047_000);
    expect(await post((ctx) => ctx.publish("film.cut", payload))).toBe(200);
    expect(await post((ctx) => ctx.enqueue("films.film.show", payload))).toBe(200);
    expect(await post((ctx) => ctx.delivery.send("cinema", payload))).toBe(200);
    await app.settled();
    expect(heard.sort()).toEqual(["delivery 349000", "event 349000", "job 349000"]);
    expect(await outbox()).toEqual([]);
  });

  test("is dispatched by the sweep if the bus and the queue were down", async () => {
    app.faults.before("PutEvents", 1).fail("AccessDenied");
    app.faults.before("SendMessage", 1).fail("AccessDenied");
    const payload = euros(600_000);
    await post((ctx) => ctx.publish("film.cut", payload));
    await post((ctx) => ctx.enqueue("films.film.show", payload));
    expect((await outbox()).length).toBe(6);
    app.clock.advance(60_000);
    await app.settled();
    expect(heard.sort()).toEqual(["event 200000", "job 200000"]);
    expect(await outbox()).toEqual([]);
  });

  test("waits until it is due, and its rows are deleted if its job is cancelled", async () => {
    const later = { delaySeconds: 60 };
    let jobId = "";
    const enqueue = async (ctx: PipelineContext) => {
      ({ jobId } = await ctx.enqueue("films.film.show", euros(900_000), later));
    };
    await post(enqueue);
    expect(await post(async (ctx) => expect(await ctx.cancelJob(jobId)).toBe(true))).toBe(200);
    expect(await outbox()).toEqual([]);
    await post(enqueue);
    app.clock.advance(61_000);
    await app.settled();
    expect(heard).toEqual(["job 300000"]);
  });

  test("is sent outside of the commit as well", async () => {
    const now = { afterCommit: false };
    const payload = euros(1_046_400);
    await post(async (ctx) => {
      await ctx.publish("film.cut", payload, now);
      await ctx.enqueue("films.film.show", payload, now);
    });
    await app.settled();
    expect(heard.sort()).toEqual(["event 348800", "job 348800"]);
  });
});

describe("the error names size, limit and service before anything is written, for", () => {
  const large = "x".repeat(mib);
  test.each<[string, (ctx: PipelineContext) => Promise<unknown>, RegExp]>([
    [
      "an event",
      (ctx) => ctx.publish("film.cut", { text: large }),
      /the event film.cut has 1049\d{3} bytes, and EventBridge takes 1048576/,
    ],
    [
      "a job",
      (ctx) => ctx.enqueue("films.film.show", { text: large }),
      /the job films.film.show has 1049\d{3} bytes, and SQS takes 1048576/,
    ],
    [
      "a delivery",
      (ctx) => ctx.delivery.send("cinema", { text: large }),
      /the job keelson.delivery.send has 104\d{4} bytes, and SQS takes 1048576/,
    ],
    [
      "a kept event, which is one item",
      (ctx) => ctx.publish("film.kept", { text: "x".repeat(393_216) }),
      /the kept event film.kept has 393\d{3} bytes, and DynamoDB takes 393216/,
    ],
    [
      "all effects of a commit",
      async (ctx) => {
        for (let n = 0; n < 4; n += 1)
          await ctx.publish("film.cut", { text: large.slice(0, 1_047_000) });
        await ctx.enqueue("films.film.show", { text: "x".repeat(10_000) });
      },
      /some 4\d{6} bytes, and a transaction of DynamoDB at most 4194304/,
    ],
  ])("%s", async (_, given, message) => {
    expect(await post(given)).toBe(500);
    expect(lastError()).toMatch(message);
    expect(await outbox()).toEqual([]);
    await app.settled();
    expect(heard).toEqual([]);
  });
});

describe("the embedded services, asked by the SDK, count as AWS does", () => {
  const clientOptions = () => ({
    endpoint: app.env["AWS_ENDPOINT_URL"] ?? "",
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
  });
  const nameOf = (error: unknown) => (error instanceof Error ? error.name : String(error));

  test("a message up to 1 MiB with its attributes, and batches in total", async () => {
    const sqs = new SQSClient(clientOptions());
    try {
      const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "films" }));
      const MessageAttributes = { cut: { DataType: "String", StringValue: "final" } };
      const room = mib - "cutStringfinal".length;
      const send = (MessageBody: string) =>
        sqs.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageAttributes }));
      await send("x".repeat(room));
      expect(await send("x".repeat(room + 1)).catch(nameOf)).toMatch("InvalidParameterValue");
      const { Messages } = await sqs.send(new ReceiveMessageCommand({ QueueUrl }));
      expect(Messages?.[0]?.Body?.length).toBe(room);
      const batch = (bytes: number) => {
        const Entries = ["a", "b"].map((Id) => ({
          ...{ Id, MessageBody: "x".repeat(bytes), MessageAttributes },
        }));
        return sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
      };
      const half = room - mib / 2;
      expect((await batch(half)).Successful).toHaveLength(2);
      expect(await batch(half + 1).catch(nameOf)).toBe("BatchRequestTooLong");
      const unfit = { cut: { DataType: "Odd", StringValue: "final" } };
      const Entries = [
        { Id: "a", MessageBody: "x", MessageAttributes: unfit },
        { Id: "b", MessageBody: "x" },
      ];
      const answer = await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
      expect([answer.Failed?.length, answer.Successful?.length]).toEqual([1, 1]);
    } finally {
      sqs.destroy();
    }
  });

  test("a call of PutEvents up to 1 MiB in total", async () => {
    const bus = new EventBridgeClient(clientOptions());
    try {
      const put = (bytes: number) => {
        const Detail = JSON.stringify({ text: "x".repeat(bytes - '{"text":""}'.length) });
        const entry = { Source: "s", DetailType: "d", Detail };
        return bus.send(new PutEventsCommand({ Entries: [entry, entry] }));
      };
      expect((await put(mib / 2 - 2)).FailedEntryCount).toBe(0);
      expect(await put(mib / 2 - 1).catch(nameOf)).toBe("ValidationException");
    } finally {
      bus.destroy();
    }
  });
});
