import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import {
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from "@aws-sdk/client-dynamodb";
import {
  type Message,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { openDatabase } from "../../src/aws/clients/dynamodb.ts";
import { dynamoTenants } from "../../src/aws/stores/tenant-store.ts";
import { signToken } from "../../src/base/identity/token.ts";
import { describeGeneratedRoles } from "../iam/generated-roles.ts";
import { type EmulatedFunction, startFunction } from "./emulated-function.ts";
import { type Ask, triggers } from "./http-events.ts";
import { nameOf, packaged, type Resource, root } from "./package.ts";
import { type RecordedCalls, recordCalls } from "./recorded-calls.ts";

const run = promisify(execFile);
const deployed = inject("deployed");
const { endpoint, prefix, resources, variables } = deployed;
const account = {
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
};
const [dynamodb, sqs] = [new DynamoDBClient(account), new SQSClient(account)];
const secret = "a secret of the tests, at least 32 bytes";
const started = new Map<
  string,
  { readonly lambda: EmulatedFunction; readonly calls: RecordedCalls }
>();
let authorization = "";

beforeAll(async () => {
  const ring = `${variables["FILES_PARAMETERS"]}/key-ring`;
  await run(
    process.execPath,
    ["src/tools/cli/main.ts", "key-ring", "create", "--parameter", ring],
    {
      cwd: root,
      env: { ...process.env, ...variables },
    },
  );
  const token = await signToken(
    { secret, userId: "ann", tenantId: "acme", roles: ["admin", "systemAdmin"] },
    { now: () => Date.now() },
  );
  authorization = `Bearer ${token}`;
});
afterAll(async () => {
  for (const { lambda, calls } of started.values()) {
    await lambda.stop();
    await calls.close();
  }
  dynamodb.destroy();
  sqs.destroy();
});

describe("one function for all routes", () => {
  test.each(Object.entries(triggers))("answers %s", async (_name, eventOf) => {
    const requestId = randomUUID();
    const body = { name: "a.txt", sizeMb: 1 };
    const answer = await http(
      await functionNamed("http"),
      { method: "POST", path: "/files", body, headers: { "x-request-id": requestId } },
      eventOf,
    );

    expect(answer).toMatchObject({
      statusCode: 201,
      body: { name: "a.txt", sizeMb: 1, id: expect.any(String) },
    });
    expect(headerOf(answer, "x-request-id")).toBe(requestId);
  });

  test("replays the answer of a write that is sent again, even in another process", async () => {
    const ask: Ask = {
      method: "POST",
      path: "/files",
      body: { name: "once.txt", sizeMb: 2 },
      headers: { "idempotency-key": `"${randomUUID()}"` },
    };
    const first = await http(await functionNamed("http"), ask);
    const again = await http(await functionNamed("http"), ask);
    const elsewhere = await http(await functionNamed("filesFileCreate"), ask);

    expect(first.statusCode).toBe(201);
    for (const repeat of [again, elsewhere]) {
      expect([repeat.statusCode, repeat.body, headerOf(repeat, "idempotent-replayed")]).toEqual([
        201,
        first.body,
        "true",
      ]);
    }
  });

  test("reads configuration from SSM, and values set by operators from DynamoDB", async () => {
    const path = "/config/files:config:signed-url-expiry-seconds";
    const lambda = await functionNamed("operate");
    expect(await http(lambda, { path })).toMatchObject({
      body: { value: 900, source: "app-override" },
    });

    const set = await http(lambda, {
      method: "PUT",
      path,
      body: { value: 120 },
      headers: { "idempotency-key": `"${randomUUID()}"` },
    });
    expect(set).toMatchObject({ statusCode: 200, body: { value: 120, source: "tenant-row" } });
    expect(await http(lambda, { path: `${path}/history` })).toMatchObject({
      body: { items: [{ value: 120 }] },
    });
    const { body } = await http(await functionNamed("filesFileDownloadUrl"), {
      path: "/files/7/download-url",
    });
    expect(body).toMatchObject({
      expiresSeconds: 120,
      url: expect.stringContaining("X-Amz-Expires=120"),
    });
  });

  test("accepts an API key of a tenant, until it is revoked", async () => {
    const lambda = await functionNamed("operate");
    const path = "/api-keys";
    const created = await http(lambda, {
      method: "POST",
      path,
      body: { name: "scanner", roles: [] },
    });
    expect(created).toMatchObject({ statusCode: 201, body: { name: "scanner" } });
    const { id } = created.body as { readonly id: string }; // safe: as the route answers
    const one = `${path}/${id}`;
    const rotated = await http(lambda, {
      method: "POST",
      path: `${one}/rotate`,
      body: { overlapSeconds: 60 },
    });
    const { key } = rotated.body as { readonly key: string }; // safe: as the route answers
    for (const [name, asked] of [
      ["filesFileList", "/files"],
      ["filesFileCreate", "/files"],
    ] as const) {
      const ask = {
        method: name === "filesFileList" ? "GET" : "POST",
        path: asked,
        headers: { authorization: `Bearer ${key}` },
      };
      const { statusCode } = await http(await functionNamed(name), ask);
      expect([name, statusCode]).toEqual([name, name === "filesFileList" ? 200 : 422]);
    }
    expect(await http(lambda, { path })).toMatchObject({ body: { items: [{ id }] } });
    expect(await http(lambda, { method: "DELETE", path: one })).toMatchObject({ statusCode: 204 });
  });

  test("seals a secret with the key ring of SSM", async () => {
    const path = "/config/files:config:webhook-secret";
    const lambda = await functionNamed("operate");
    const set = await http(lambda, { method: "PUT", path, body: { value: "whsec_dGVzdA==" } });
    expect(set).toMatchObject({ statusCode: 200, body: { source: "tenant-row" } });

    const { body } = await http(lambda, { path });
    expect(body).toMatchObject({
      levels: [{ source: "tenant-row", isSet: true, active: true }, {}, {}, {}],
    });
    expect(JSON.stringify([set, body])).not.toContain("whsec_");
  });

  test("answers and logs client errors", async () => {
    const lambda = await functionNamed("http");
    expect(await http(lambda, { path: "/files/none" })).toMatchObject({
      statusCode: 404,
      body: { error: "not_found" },
    });
    const failed = await http(lambda, {
      method: "POST",
      path: "/files",
      body: { name: "", sizeMb: 1 },
    });
    expect(failed).toMatchObject({ statusCode: 422, body: { error: "validation_error" } });
    expect(lambda.logs).toContainEqual(
      expect.objectContaining({ msg: "request.failed", error: "not_found" }),
    );
  });

  test("answers 504 before its timeout when the store does not respond", async () => {
    const calls = await recordCalls(endpoint);
    const lambda = await startFunction(deployed, "http", {
      timeoutSeconds: 10,
      spareSeconds: 3,
      env: { AWS_ENDPOINT_URL: calls.endpoint, KEELSON_AUTH_SECRET: secret, FILES_PARAMETERS: "" },
    });
    try {
      // Lambda's emulator counts the start of the process as time of the first invocation; Lambda does not.
      expect(await http(lambda, { path: "/nothing" })).toMatchObject({ statusCode: 404 });
      // Then the tenant is known: an unknown one would be a 503 after 2 s. A busy machine may need several attempts.
      await expect
        .poll(async () => (await http(lambda, { path: "/files/7" })).statusCode)
        .toBe(404);
      calls.hang();

      const answer = await http(lambda, { path: "/files/7" });

      expect(answer).toMatchObject({ statusCode: 504, body: { error: "timeout" } });
      expect(headerOf(answer, "x-request-id")).toEqual(expect.any(String));
      await expect
        .poll(() => lambda.logs)
        .toContainEqual(expect.objectContaining({ msg: "handler.abandoned" }));
      const abandoned = lambda.logs.find(({ msg }) => msg === "handler.abandoned");
      expect(abandoned?.["afterMs"]).toBeLessThan(10_000);
    } finally {
      await lambda.stop();
      await calls.close();
    }
  });
});

test("functions for one handler answer their own routes, and no others", async () => {
  const created = await http(await functionNamed("filesFileCreate"), {
    method: "POST",
    path: "/files",
    body: { name: "each.txt", sizeMb: 3 },
  });
  // Safe: the output of files.file.create.
  const { id } = created.body as { id: string };

  expect(await http(await functionNamed("filesFileShow"), { path: `/files/${id}` })).toMatchObject({
    statusCode: 200,
    body: { id },
  });
  expect(await http(await functionNamed("filesFileList"), { path: "/files" })).toMatchObject({
    statusCode: 200,
  });
  expect(await http(await functionNamed("filesFileQuota"), { path: "/files/quota" })).toMatchObject(
    {
      body: { storageQuotaMb: 5_000 },
    },
  );
  const deletion = {
    method: "DELETE",
    path: `/files/${id}`,
    headers: { "idempotency-key": `"${randomUUID()}"` },
  };
  expect(await http(await functionNamed("filesFileDelete"), deletion)).toMatchObject({
    statusCode: 204,
  });
  expect(await http(await functionNamed("filesFileShow"), { path: `/files/${id}` })).toMatchObject({
    statusCode: 404,
  });
  expect(await http(await functionNamed("filesFileShow"), { path: "/config" })).toMatchObject({
    statusCode: 404,
  });
});

describe("the function for queues", () => {
  test("returns the messages that have to be retried", async () => {
    const { id } = (await createdFile("batch.txt")).body as { id: string }; // safe: the output of files.file.create
    const [good] = await received("events", ({ Body = "" }) => Body.includes(id));
    await sqs.send(
      new SendMessageCommand({
        QueueUrl: queueUrl("events"),
        MessageBody: eventOf("file.unknown", {}),
      }),
    );
    const [later] = await received("events", ({ Body = "" }) => Body.includes("file.unknown"));
    const lambda = await functionNamed("queue");

    expect(
      await lambda.invoke({ Records: [recordOf(good, "events"), recordOf(later, "events")] }),
    ).toEqual({
      batchItemFailures: [{ itemIdentifier: later?.MessageId }],
    });
    const [job] = await received("jobs.fifo", ({ Body = "" }) => Body.includes(id));
    expect(await lambda.invoke({ Records: [recordOf(job, "jobs.fifo")] })).toEqual({
      batchItemFailures: [],
    });
    const [message] = await received("jobs.fifo", ({ Body = "" }) => Body.includes(id));
    expect(await lambda.invoke({ Records: [recordOf(message, "jobs.fifo")] })).toEqual({
      batchItemFailures: [],
    });
    expect(lambda.logs).toContainEqual(
      expect.objectContaining({
        msg: "delivery.message",
        message: { text: "the file was scanned", file: id },
      }),
    );
  });

  test.each(["events", "jobs.fifo"])(
    "dead-letters a message that can never succeed, of the queue %s",
    async (queue) => {
      const text = `no JSON at all ${randomUUID()}`;
      const ordered = queue.endsWith(".fifo")
        ? { MessageGroupId: "a", MessageDeduplicationId: randomUUID() }
        : {};
      await sqs.send(
        new SendMessageCommand({ QueueUrl: queueUrl(queue), MessageBody: text, ...ordered }),
      );
      const [message] = await received(queue, ({ Body }) => Body === text);

      expect(
        await (await functionNamed("queue")).invoke({ Records: [recordOf(message, queue)] }),
      ).toEqual({
        batchItemFailures: [],
      });
      const dead = queue.replace(/^(\w+)/, "$1-dead");
      expect(await received(dead, ({ Body }) => Body === text)).toHaveLength(1);
    },
  );
});

test("the function for the stream dispatches events left in the outbox", async () => {
  const key = await leftInOutbox(0);
  const lambda = await functionNamed("stream");
  const record = {
    eventSource: "aws:dynamodb",
    eventSourceARN: `arn:aws:dynamodb:us-east-1:000000000000:table/${prefix}-outbox/stream/2026`,
    eventName: "INSERT",
    dynamodb: { Keys: { pk: { S: key.pk }, sk: { S: key.sk } }, SequenceNumber: "1" },
  };

  expect(await lambda.invoke({ Records: [record] })).toEqual({ batchItemFailures: [] });
  expect(await isInOutbox(key)).toBe(false);
  expect(await received("events", ({ Body = "" }) => Body.includes(key.eventId))).toHaveLength(1);
});

test("the function for the outbox dispatches older events", async () => {
  const key = await leftInOutbox(60_000);

  expect(await (await functionNamed("sweep")).invoke({})).toEqual({
    dispatched: 1,
    left: 0,
    setAside: 0,
  });
  expect(await isInOutbox(key)).toBe(false);
});

test("the function for schedules fires due schedules once, and their jobs run", async () => {
  const first = await functionNamed("schedule");
  expect(await first.invoke({})).toEqual({ fired: 0, failed: 0 }); // it is seen for the first time
  const longAgoMs = Date.now() - 40 * 86_400_000;
  await lookedLast(longAgoMs);
  await registeredSince(longAgoMs, "acme");

  const lambda = await anotherProcess("schedule"); // one remembers its first look, and time zones for 40 s
  expect(await lambda.invoke({})).toEqual({ fired: 2, failed: 0 });
  expect(await lambda.invoke({})).toEqual({ fired: 0, failed: 0 });
  const queue = await functionNamed("queue");
  const names = ["billing.plan.charge", "files.storage.remind"];
  const isOneOf = ({ Body = "" }: Message) => names.some((name) => Body.includes(name));
  const jobs = await received("jobs.fifo", isOneOf, 2);
  const sent = jobs.map(({ Body = "" }) => JSON.parse(Body));
  expect(sent.map(({ name, tenantId }) => `${name} ${tenantId}`).sort()).toEqual(
    names.map((name) => `${name} acme`),
  );
  for (const job of jobs) {
    expect(await queue.invoke({ Records: [recordOf(job, "jobs.fifo")] })).toEqual({
      batchItemFailures: [],
    });
  }
  const [message] = await received("jobs.fifo", ({ Body = "" }) =>
    Body.includes("the plan was charged"),
  );
  expect(JSON.parse(message?.Body ?? "")).toMatchObject({ tenantId: "acme" });
});

// The last test: from now on, files cannot be changed.
test("an error is logged with the name of its class, although the bundle is minified", async () => {
  const path = "/config/files:config:maintenance-mode";
  const set = await http(await functionNamed("operate"), {
    method: "PUT",
    path,
    body: { value: true, scope: "system" },
  });
  expect(set.statusCode).toBe(200);
  await expect.poll(async () => (await createdFile("refused.txt")).statusCode).toBe(503); // rows are cached

  expect((await functionNamed("http")).logs).toContainEqual(
    expect.objectContaining({
      status: 503,
      stack: expect.stringMatching(/^PipelineError: Files cannot be changed/),
    }),
  );
});

// Permissions that a run does not need, and the reasons for granting them.
const onlySometimes: Readonly<Record<string, string>> = {
  "dynamodb:UpdateItem once":
    "renews the lease of a handler that takes longer than 10 s, and notes the use of an API key",
  "dynamodb:ConditionCheckItem once": "begins a step of any write, consumer or job",
  "dynamodb:UpdateItem outbox": "marks a job that is due before it is sent",
  "dynamodb:GetItem once":
    "reads a duplicate's claim, the parts of a large answer, or what an API key is",
  "dynamodb:Query once": "`server.tenants.list` in any handler",
  "dynamodb:DeleteItem once": "releases the claim of a handler that fails",
  "ssm:GetParametersByPath config/*":
    "IAM takes a path for the path itself, or for what is below it",
  "dynamodb:BatchGetItem config": "`ctx.config` of a consumer, and the secret of a webhook",
  "dynamodb:Query config": "`ctx.config` with eight or more keys of a feature",
  "dynamodb:PutItem outbox": "sets aside an event that the bus refuses for good",
  "sqs:ChangeMessageVisibility jobs.fifo": "hides a job that failed, for a while",
  "sqs:SendMessage events": "sends an event again that another process has been running for long",
  "sqs:SendMessage jobs.fifo": "`ctx.enqueue` of any write, consumer or job",
  "dynamodb:DeleteItem outbox":
    "`ctx.publish` of any write, consumer or job: the event was dispatched",
  "events:PutEvents bus": "`ctx.publish` of any write, consumer or job",
  "dynamodb:GetItem events": "the active version of a projection, in any handler",
  "dynamodb:Query events": "reads events that are kept, in any handler",
  "dynamodb:PutItem events": "keeps an event that any write, consumer or job publishes",
  "dynamodb:BatchGetItem events":
    "keeps an event that any write, consumer or job publishes: its day is looked at before",
};
/** A role has the tables of its feature, whatever the handler does with them: which of these, the next test says. */
const ofFeatures = / files$/;

describe("the role of each function", () => {
  const roles = [
    "filesFileCreate",
    "filesFileList",
    "filesFileDownloadUrl",
    "filesFileDelete",
    "operate",
    "queue",
    "stream",
    "sweep",
    "schedule",
  ];

  test.each(roles)("%s: grants every call that is made, and nothing that is not needed", (name) => {
    const granted = grantedTo(name);
    const needed = neededBy(
      name === "filesFileList" ? ["filesFileList", "filesFileQuota", "filesFileShow"] : [name],
    );

    expect(
      needed.filter((permission) => !granted.some((grant) => covers(grant, permission))),
    ).toEqual([]);
    expect(withoutNeed(granted, needed)).toEqual([]);
  });

  test("allows no writes for functions that only answer queries", () => {
    const tables = ["filesFileList", "filesFileQuota", "filesFileShow", "filesFileDownloadUrl"]
      .flatMap(grantedTo)
      .map(short);
    expect([...new Set(tables.filter((grant) => ofFeatures.test(grant)))].sort()).toEqual(
      ["BatchGetItem", "GetItem", "Query"].map((action) => `dynamodb:${action} files`),
    );
    const writes = ["filesFileCreate", "filesFileDelete", "queue"].map(grantedTo);
    for (const granted of writes) expect(granted.map(short)).toContain("dynamodb:PutItem files");
  });

  test("has all permissions of the single-route functions when it serves all routes", async () => {
    const { resources: one } = await packaged("--stage", prefix.replace("keelson-files-", ""));
    const granted = grantsOf(one, "HttpRole");
    const needed = neededBy([
      "http",
      "filesFileCreate",
      "filesFileList",
      "filesFileQuota",
      "filesFileShow",
      "filesFileDownloadUrl",
      "filesFileDelete",
      "operate",
    ]);

    expect(needed.length).toBeGreaterThan(12);
    expect(
      needed.filter((permission) => !granted.some((grant) => covers(grant, permission))),
    ).toEqual([]);
    expect(withoutNeed(granted, needed)).toEqual([]);
  });

  /** Permissions that the calls of these functions need. */
  function neededBy(names: readonly string[]): string[] {
    const calls = names.map((name) => started.get(name)?.calls);
    expect([names, calls.map((recorded) => [...(recorded?.unknown ?? ["was not run"])])]).toEqual([
      names,
      names.map(() => []),
    ]);
    return calls.flatMap((recorded) => [...(recorded?.permissions ?? [])]);
  }

  /** Permissions that are granted, but needed neither by a call, nor in rare cases, nor by Lambda. */
  function withoutNeed(granted: readonly string[], needed: readonly string[]): string[] {
    return granted
      .filter((grant) => !needed.some((permission) => covers(grant, permission)))
      .map(short)
      .filter(
        (grant) => !(grant in onlySometimes) && !ofFeatures.test(grant) && !isThePlatforms(grant),
      );
  }
});

describeGeneratedRoles({
  callsOf: (name) => started.get(name)?.calls.calls ?? [],
  prefix,
  parameters: variables["FILES_PARAMETERS"] ?? "",
});

/** Actions of Lambda itself on behalf of a function, and of the holder of a presigned URL. */
function isThePlatforms(grant: string): boolean {
  return (
    /^logs:|^dynamodb:(DescribeStream|GetRecords|GetShardIterator|ListStreams) |^sqs:(ReceiveMessage|DeleteMessage) /.test(
      grant,
    ) || grant.startsWith("s3:GetObject")
  );
}

/** `dynamodb:PutItem once`, regardless of the stage. */
function short(grant: string): string {
  return grant
    .replace(/ (event-bus)\/.*$/, " $1")
    .replace(/ .*?[/-]((?:[a-z]+)(?:\.fifo|\/\*)?)$/, " $1");
}

function covers(grant: string, permission: string): boolean {
  return grant.endsWith("*") ? permission.startsWith(grant.slice(0, -1)) : grant === permission;
}

function grantedTo(name: string): string[] {
  const handler = name === "operate" ? "http" : name;
  return grantsOf(resources, `${handler.charAt(0).toUpperCase()}${handler.slice(1)}Role`);
}

/** The statements of a role as `<action> <resource>`; the customer's key is not used, because it is not set. */
function grantsOf(all: Readonly<Record<string, Resource>>, role: string): string[] {
  const attached = Object.values(all).filter(
    ({ Type, Properties }) =>
      Type === "AWS::IAM::Policy" &&
      JSON.stringify(Properties["Roles"]) === JSON.stringify([{ Ref: role }]),
  );
  // Safe: `keelson infra` writes those, and the sample's own have the same members.
  const policies = [
    all[role]?.Properties["Policies"] ?? [],
    attached.map(({ Properties }) => Properties),
  ].flat() as Policy[];
  return policies
    .flatMap(({ PolicyDocument }) => PolicyDocument.Statement)
    .flatMap(({ Action = [], Resource }) =>
      [Action]
        .flat()
        .flatMap((action) =>
          [Resource].flat().map((resource) => `${action} ${calledName(all, resource)}`),
        ),
    );
}

interface Policy {
  readonly PolicyDocument: {
    readonly Statement: readonly {
      readonly Action?: string | string[];
      readonly Resource: unknown;
    }[];
  };
}

const kinds = new Map([
  ["AWS::DynamoDB::Table", "table"],
  ["AWS::SQS::Queue", "queue"],
  ["AWS::Events::EventBus", "event-bus"],
]);

/** A resource as calls name it. */
function calledName(all: Readonly<Record<string, Resource>>, resource: unknown): string {
  const { "Fn::GetAtt": [logical = ""] = [], "Fn::Sub": text = "" } = resource as {
    readonly "Fn::GetAtt"?: readonly string[];
    readonly "Fn::Sub"?: string;
  }; // safe: infra/ has no other functions in statements
  if (text !== "") return text.replace(/^.*:parameter/, "parameter");
  const found = all[logical];
  const kind = kinds.get(String(found?.Type));
  return found === undefined || kind === undefined ? logical : `${kind}/${nameOf(found, prefix)}`;
}

interface Answer {
  readonly statusCode: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[]>>;
  readonly body: unknown;
}

/** Invokes a function with a request of ann's, and gives its answer with the body parsed. */
async function http(
  lambda: EmulatedFunction,
  { headers = {}, ...ask }: Ask,
  eventOf: (ask: Ask) => object = triggers["an HTTP API"],
): Promise<Answer> {
  const answer = await lambda.invoke(eventOf({ ...ask, headers: { authorization, ...headers } }));
  if (typeof answer["statusCode"] !== "number")
    throw new Error(`no answer: ${JSON.stringify(answer)}\n${lambda.text()}`);
  const { body } = answer;
  // Safe: it was just looked at.
  return {
    ...answer,
    body: typeof body === "string" && body !== "" ? JSON.parse(body) : undefined,
  } as unknown as Answer;
}

function headerOf(
  { headers = {}, multiValueHeaders = {} }: Answer,
  name: string,
): string | undefined {
  return headers[name] ?? multiValueHeaders[name]?.[0];
}

/** A function that runs already, or is started, with its calls recorded; `operate` is that for routes without one of their own. */
async function functionNamed(name: string): Promise<EmulatedFunction> {
  const found = started.get(name);
  if (found !== undefined) return found.lambda;
  const calls = await recordCalls(endpoint);
  return begin(name, calls);
}

/** Ends the process of a function that runs, and starts another. Its calls are recorded with the former ones. */
async function anotherProcess(name: string): Promise<EmulatedFunction> {
  const former = started.get(name);
  if (former === undefined) throw new Error(`${name} does not run`);
  await former.lambda.stop();
  return begin(name, former.calls);
}

async function begin(name: string, calls: RecordedCalls): Promise<EmulatedFunction> {
  const handler = name === "operate" ? "http" : name;
  // As in the template: those that answer no requests are not given the secret.
  const secrets = ["queue", "schedule", "stream", "sweep"].includes(name)
    ? {}
    : { KEELSON_AUTH_SECRET: secret };
  const lambda = await startFunction(deployed, handler, {
    env: { AWS_ENDPOINT_URL: calls.endpoint, ...secrets },
  });
  started.set(name, { lambda, calls });
  return lambda;
}

async function createdFile(name: string): Promise<Answer> {
  return http(await functionNamed("http"), {
    method: "POST",
    path: "/files",
    body: { name, sizeMb: 1 },
  });
}

function queueUrl(queue: string): string {
  return `${endpoint}/000000000000/${prefix}-${queue}`;
}

/** The first messages of a queue that fit; what else comes is hidden for a while, as for any other consumer. */
async function received(
  queue: string,
  fits: (message: Message) => boolean,
  count = 1,
): Promise<Message[]> {
  const found: Message[] = [];
  await expect
    .poll(
      async () => {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({
            QueueUrl: queueUrl(queue),
            MaxNumberOfMessages: 10,
            MessageSystemAttributeNames: ["All"],
          }),
        );
        found.push(...Messages.filter(fits));
        return found.length;
      },
      { message: `a message in ${queue}` },
    )
    .toBeGreaterThanOrEqual(count);
  return found;
}

/** A message as Lambda's poller hands it over. */
function recordOf(
  { MessageId, Body, ReceiptHandle, Attributes }: Message = {},
  queue: string,
): object {
  return {
    messageId: MessageId,
    body: Body,
    receiptHandle: ReceiptHandle,
    attributes: Attributes,
    messageAttributes: {},
    eventSource: "aws:sqs",
    eventSourceARN: `arn:aws:sqs:us-east-1:000000000000:${prefix}-${queue}`,
    awsRegion: "us-east-1",
  };
}

function eventOf(type: string, payload: object, eventId: string = randomUUID()): string {
  const cause = { causedBy: "r1", origRequestId: "r1", tenantId: "acme", userId: "ann" };
  return JSON.stringify({
    kind: "shared",
    type,
    eventId,
    payload: { ...payload, requestId: "r1" },
    ...cause,
  });
}

/** A row that has not been dispatched. */
async function leftInOutbox(ageMs: number) {
  const eventId = randomUUID();
  const key = {
    pk: "shard#3",
    sk: `${String(Date.now() - ageMs).padStart(15, "0")}#${eventId}`,
    eventId,
  };
  const envelope = eventOf("file.created", { id: "gone", sizeMb: 1 }, eventId);
  const item = { ...key, type: "file.created", envelope };
  const Item = Object.fromEntries(Object.entries(item).map(([name, S]) => [name, { S }]));
  await dynamodb.send(new PutItemCommand({ TableName: `${prefix}-outbox`, Item }));
  return key;
}

/** Makes it long ago that schedules were looked at. */
async function lookedLast(atMs: number): Promise<void> {
  const TableName = `${prefix}-once`;
  const { Items = [] } = await dynamodb.send(
    new ScanCommand({ TableName, FilterExpression: "attribute_exists(lastMs)" }),
  );
  expect(Items.map(({ sk }) => sk?.S).sort()).toEqual(["fires", "first-look"]);
  for (const Item of Items)
    await dynamodb.send(
      new PutItemCommand({ TableName, Item: { ...Item, lastMs: { N: String(atMs) } } }),
    );
}

async function registeredSince(createdMs: number, tenantId: string): Promise<void> {
  const database = await openDatabase(account);
  const store = dynamoTenants(database, `${prefix}-once`);
  expect(await store.add({ tenantId, timeZone: "UTC", createdMs })).toBe(true);
  database.destroy();
}

async function isInOutbox({
  pk,
  sk,
}: {
  readonly pk: string;
  readonly sk: string;
}): Promise<boolean> {
  const Key = { pk: { S: pk }, sk: { S: sk } };
  return (
    (
      await dynamodb.send(
        new GetItemCommand({ TableName: `${prefix}-outbox`, Key, ConsistentRead: true }),
      )
    ).Item !== undefined
  );
}
