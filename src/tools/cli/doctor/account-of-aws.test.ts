import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { EventBridgeClient } from "@aws-sdk/client-eventbridge";
import { SQSClient } from "@aws-sdk/client-sqs";
import { afterEach, describe, expect, test } from "vitest";
import { type StubAnswer, type StubAws, stubAws } from "../../../../test/support/stub-aws.ts";
import { configTable, onceTable, outboxTable } from "../../../app/handlers/table.ts";
import { eventRule } from "../../../aws/messaging/rules.ts";
import type { FairMode } from "../../../parts/messages/job-route.ts";
import { neededQueue, neededTable } from "../../infra/needs.ts";
import { busChecks } from "./bus.ts";
import { CallError, type Check, outcomeOf } from "./outcome.ts";
import { type Place, placeOf, type ServiceName, withClient } from "./place.ts";
import { askedQueue, fairCheck, queueChecks } from "./queues.ts";
import { tableChecks } from "./tables.ts";

// What only AWS answers: a stub in its place, which nobody takes for an emulator.

let made: StubAws | undefined;
afterEach(() => made?.close());

type Answers = Parameters<typeof stubAws>[0];

async function at(service: ServiceName, answers: Answers, isEmulator = false): Promise<Place> {
  made ??= await stubAws({});
  made.close();
  made = await stubAws(answers);
  const account = {
    AWS_REGION: "eu-west-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  const given = { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000, endpoint: made.endpoint };
  return {
    ...placeOf(service, account, given),
    isEmulator,
    aws: placeOf(service, account, { ...given, endpoint: undefined }).aws,
  };
}

/** What the checks of a name come to. */
async function came(checks: readonly Check[], name: string) {
  const check = checks.find((one) => one.name === name);
  if (check === undefined)
    throw new Error(
      `there is no check ${name}; there are ${checks.map((one) => one.name).join(", ")}`,
    );
  const { status, message, fix } = await check.run().catch(outcomeOf);
  return [status, message, ...fix];
}

const attributes = (...names: string[]) =>
  names.map((AttributeName) => ({ AttributeName, AttributeType: "S" }));
const keys = {
  AttributeDefinitions: attributes("pk", "sk"),
  KeySchema: [
    { AttributeName: "pk", KeyType: "HASH" },
    { AttributeName: "sk", KeyType: "RANGE" },
  ],
};

describe("a table in AWS", () => {
  const look = async (
    table: typeof configTable,
    Table: object | undefined,
    others: Answers = {},
    what = "",
  ) => {
    const place = await at("dynamodb", {
      DescribeTable: Table === undefined ? {} : { Table },
      ...others,
    });
    return came(
      tableChecks(withClient(place, new DynamoDBClient(place.options)), neededTable(table, "t")),
      `table t${what}`,
    );
  };
  const active = { ...keys, TableStatus: "ACTIVE" };

  test("is reported until it is active, or if its keys differ or it does not exist", async () => {
    expect(await look(onceTable, { ...keys, TableStatus: "CREATING" })).toEqual([
      "fail",
      "it is CREATING",
      "aws dynamodb wait table-exists --table-name t",
    ]);
    expect((await look(onceTable, {}))[1]).toContain("its keys are , not pk (S), sk (S)");
    expect((await look(onceTable, undefined))[1]).toBe("it does not exist");
  });

  const withIndexes: typeof configTable = {
    name: "files",
    partitionKey: "pk",
    sortKey: "sk",
    indexes: [
      { name: "byOwner", partitionKey: "owner", sortKey: "createdAt", project: undefined },
      { name: "bySize", partitionKey: "size", sortKey: undefined, project: ["name"] },
    ],
  };
  const definitions =
    "--attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S";
  const byOwnerSchema = [
    { AttributeName: "owner", KeyType: "HASH" },
    { AttributeName: "createdAt", KeyType: "RANGE" },
  ];
  const described = (index: object) => ({
    ...active,
    AttributeDefinitions: [...keys.AttributeDefinitions, ...attributes("owner", "createdAt")],
    GlobalSecondaryIndexes: [
      {
        IndexName: "byOwner",
        KeySchema: byOwnerSchema,
        IndexStatus: "ACTIVE",
        Projection: { ProjectionType: "ALL" },
        ...index,
      },
    ],
  });
  const byOwner = JSON.stringify({
    IndexName: "byOwner",
    KeySchema: byOwnerSchema,
    Projection: { ProjectionType: "ALL" },
  });

  test("gets a command that creates it with its indexes when it is missing", async () => {
    const place = await at("dynamodb", {
      DescribeTable: { error: "ResourceNotFoundException", message: "" },
    });
    const client = new DynamoDBClient(place.options);
    const checks = tableChecks(withClient(place, client), neededTable(withIndexes, "t"));
    const [, , fix] = await came(checks, "table t");
    expect(fix).toContain(
      `${definitions} AttributeName=owner,AttributeType=S AttributeName=createdAt,AttributeType=S`,
    );
    const bySize =
      '{"IndexName":"bySize","KeySchema":[{"AttributeName":"size","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["name"]}}';
    expect(fix).toContain(`--global-secondary-indexes '[${byOwner},${bySize}]'`);
    expect(await came(checks, "table t: index byOwner")).toEqual([
      "skip",
      "not checked: see table t",
    ]);
  });

  test.each<[string, object, string, readonly string[]]>([
    [
      "is there",
      described({}),
      "byOwner",
      ["ok", "active, with the keys owner (S), createdAt (S)"],
    ],
    [
      "is missing",
      active,
      "byOwner",
      [
        "fail",
        "it does not exist",
        `aws dynamodb update-table --table-name t ${definitions} AttributeName=owner,AttributeType=S AttributeName=createdAt,AttributeType=S --global-secondary-index-updates '[{"Create":${byOwner}}]'`,
      ],
    ],
    [
      "is still being built",
      described({ IndexStatus: "CREATING" }),
      "byOwner",
      [
        "fail",
        "it is CREATING, so it cannot be queried yet",
        "aws dynamodb describe-table --table-name t --query 'Table.GlobalSecondaryIndexes[?IndexName=='\\''byOwner'\\''].[IndexStatus,Backfilling]'",
      ],
    ],
    [
      "has other keys",
      described({ KeySchema: byOwnerSchema.slice(0, 1) }),
      "byOwner",
      [
        "fail",
        "its keys are owner (S), not owner (S), createdAt (S); an index cannot be changed, so declare it under another name",
      ],
    ],
    [
      "projects less",
      described({ Projection: { ProjectionType: "KEYS_ONLY" } }),
      "byOwner",
      [
        "fail",
        "it projects its keys alone, not all attributes; an index cannot be changed, so declare it under another name",
      ],
    ],
    [
      "projects more",
      {
        ...described({
          IndexName: "bySize",
          KeySchema: [{ AttributeName: "size", KeyType: "HASH" }],
        }),
        AttributeDefinitions: attributes("pk", "sk", "size"),
      },
      "bySize",
      [
        "warn",
        "it projects all attributes, more than is declared: that is paid for with every write",
      ],
    ],
  ])("is reported if its index %s", async (_, Table, name, outcome) => {
    expect(await look(withIndexes, Table, {}, `: index ${name}`)).toEqual(outcome);
  });

  const ttl = (TimeToLiveDescription?: object) => ({
    DescribeTimeToLive: { TimeToLiveDescription } as StubAnswer,
  });
  const set = (enabled: boolean, name: string) =>
    `aws dynamodb update-time-to-live --table-name t --time-to-live-specification Enabled=${enabled},AttributeName=${name}`;

  test.each<[object | undefined, readonly string[]]>([
    [{ TimeToLiveStatus: "ENABLED", AttributeName: "expiration" }, ["ok", "by expiration"]],
    [{ TimeToLiveStatus: "ENABLING", AttributeName: "expiration" }, ["ok", "by expiration"]],
    [
      { TimeToLiveStatus: "DISABLED" },
      ["fail", "it is DISABLED, so expired items are never deleted", set(true, "expiration")],
    ],
    [
      undefined,
      ["fail", "it is DISABLED, so expired items are never deleted", set(true, "expiration")],
    ],
    [
      { TimeToLiveStatus: "ENABLED", AttributeName: "ttl" },
      [
        "fail",
        "it is by ttl, not expiration; AWS lets an hour pass between the two",
        set(false, "ttl"),
        set(true, "expiration"),
      ],
    ],
  ])("is checked for its time to live: %j", async (description, outcome) => {
    expect(await look(onceTable, active, ttl(description), ": time to live")).toEqual(outcome);
  });

  test.each<[string | undefined, string]>([
    ["ENABLED", "ok"],
    ["DISABLED", "warn"],
    [undefined, "warn"],
  ])("with point-in-time recovery %s is %s", async (PointInTimeRecoveryStatus, status) => {
    const PointInTimeRecoveryDescription = { PointInTimeRecoveryStatus };
    const ContinuousBackupsDescription =
      PointInTimeRecoveryStatus === undefined ? undefined : { PointInTimeRecoveryDescription };
    const answers = { DescribeContinuousBackups: { ContinuousBackupsDescription } as StubAnswer };
    const [found, , fix] = await look(configTable, active, answers, ": point-in-time recovery");
    expect(found).toBe(status);
    if (status === "warn")
      expect(fix).toMatch(/^aws dynamodb update-continuous-backups --table-name t .*Enabled=true$/);
  });

  test.each<[boolean | undefined, string]>([
    [true, "ok"],
    [false, "warn"],
    [undefined, "warn"],
  ])("with deletion protection %s is %s", async (DeletionProtectionEnabled, status) => {
    const [found, , fix] = await look(
      configTable,
      { ...active, DeletionProtectionEnabled },
      {},
      ": deletion protection",
    );
    expect([found, fix]).toEqual([
      status,
      status === "ok"
        ? undefined
        : "aws dynamodb update-table --table-name t --deletion-protection-enabled",
    ]);
  });

  const stream = "aws dynamodb update-table --table-name t --stream-specification";
  test.each<[object | undefined, readonly string[]]>([
    [{ StreamEnabled: true, StreamViewType: "KEYS_ONLY" }, ["ok", "with the keys only"]],
    [
      { StreamEnabled: true, StreamViewType: "NEW_IMAGE" },
      [
        "warn",
        "it carries NEW_IMAGE: its readers see all events, and keys are enough",
        `${stream} StreamEnabled=false`,
        `${stream} StreamEnabled=true,StreamViewType=KEYS_ONLY`,
      ],
    ],
    [
      undefined,
      [
        "warn",
        "the table has no stream: in Lambda, only the sweep dispatches leftover events; a container works without one",
        `${stream} StreamEnabled=true,StreamViewType=KEYS_ONLY`,
      ],
    ],
  ])("is checked for its stream: %j", async (StreamSpecification, outcome) => {
    expect(await look(outboxTable, { ...active, StreamSpecification }, {}, ": stream")).toEqual(
      outcome,
    );
  });
});

const arn = (name: string) => `arn:aws:sqs:eu-west-1:123456789012:${name}`;
const url = (name: string) => `https://sqs.eu-west-1.amazonaws.com/123456789012/${name}`;
const setAttributes = (name: string, attributes: Record<string, string>) =>
  `aws sqs set-queue-attributes --queue-url ${url(name)} --attributes '${JSON.stringify(attributes)}'`;

/** A stub of queues by their names. */
const queues = (attributes: Readonly<Record<string, Record<string, string>>>): Answers => ({
  GetQueueUrl: ({ QueueName }) => {
    const name = String(QueueName);
    return name in attributes
      ? { QueueUrl: url(name) }
      : {
          error: "com.amazonaws.sqs#QueueDoesNotExist",
          message: "The specified queue does not exist.",
        };
  },
  GetQueueAttributes: ({ QueueUrl }) => {
    const name = String(QueueUrl).slice(String(QueueUrl).lastIndexOf("/") + 1);
    return { Attributes: { QueueArn: arn(name), ...attributes[name] } };
  },
});

describe("a queue in AWS", () => {
  const look = async (
    name: string,
    attributes: Parameters<typeof queues>[0],
    what = "",
    isOrdered = true,
  ) => {
    const place = await at("sqs", queues(attributes));
    const client = new SQSClient({ ...place.options, useQueueUrlAsEndpoint: false });
    const queuesAt = withClient(place, client);
    const queue = askedQueue(queuesAt, neededQueue(isOrdered ? "jobs" : "events", name));
    return came(queueChecks(queuesAt, queue), `${queue.name}${what}`);
  };
  const usual = { FifoQueue: "true", VisibilityTimeout: "180" };
  const redrive = (dead: string, maxReceiveCount: number | string) => ({
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: arn(dead), maxReceiveCount }),
  });

  test("is found by its name and by its URL", async () => {
    const outcome = [
      "ok",
      "FIFO, visibility timeout 180 s; a Lambda function needs six times its own",
    ];
    expect(await look("jobs.fifo", { "jobs.fifo": usual })).toEqual(outcome);
    expect(await look(url("jobs.fifo"), { "jobs.fifo": usual })).toEqual(outcome);
    expect((await look("jobs.fifo", {}))[1]).toBe("it does not exist");
    const place = await at("sqs", {
      GetQueueUrl: { QueueUrl: url("odd") },
      GetQueueAttributes: {},
    });
    const wanted = neededQueue("jobs", "odd");
    const client = new SQSClient({ ...place.options, useQueueUrlAsEndpoint: false });
    const queuesAt = withClient(place, client);
    const [status, message] = await came(
      queueChecks(queuesAt, askedQueue(queuesAt, wanted)),
      "queue odd",
    );
    expect([status, message]).toEqual([
      "fail",
      expect.stringMatching(/^it cannot be checked: TypeError/),
    ]);
  });

  test("must be FIFO for jobs, and needs a visibility timeout that covers the work", async () => {
    expect(await look("jobs", { jobs: { VisibilityTimeout: "30" } })).toEqual([
      "fail",
      "it is not FIFO, and cannot be made so",
      "aws sqs create-queue --queue-name jobs.fifo --attributes FifoQueue=true,VisibilityTimeout=30,MaximumMessageSize=1048576,MessageRetentionPeriod=604800",
      "export KEELSON_JOB_QUEUE=jobs.fifo",
    ]);
    expect(await look("events", { events: { VisibilityTimeout: "29" } }, "", false)).toEqual([
      "fail",
      "its visibility timeout is 29 s: a message is delivered again while it is being handled",
      `aws sqs set-queue-attributes --queue-url ${url("events")} --attributes VisibilityTimeout=30`,
    ]);
  });

  test.each<[string, string]>([
    ["jobs.fifo", "jobs-dead.fifo"],
    ["events", "events-dead"],
  ])("%s without a dead-letter queue gets a command that creates one", async (name, dead) => {
    const ordered = name.endsWith(".fifo") ? "FifoQueue=true," : "";
    const fixes = [
      `aws sqs create-queue --queue-name ${dead} --attributes ${ordered}MaximumMessageSize=1048576,MessageRetentionPeriod=1209600`,
      setAttributes(name, redrive(dead, 5)),
    ];
    for (const attributes of [usual, { ...usual, RedrivePolicy: "" }]) {
      expect(await look(name, { [name]: attributes }, ": dead letters", ordered !== "")).toEqual([
        "fail",
        "there is no dead-letter queue: failing messages are retried until they expire",
        ...fixes,
      ]);
    }
  });

  test("gets a command that recreates its dead-letter queue if that no longer exists", async () => {
    expect(
      await look(
        "jobs.fifo",
        { "jobs.fifo": { ...usual, ...redrive("gone.fifo", 5) } },
        ": dead letters",
      ),
    ).toEqual([
      "fail",
      "its dead-letter queue gone.fifo does not exist: failing messages are retried until they expire",
      "aws sqs create-queue --queue-name gone.fifo --attributes FifoQueue=true,MaximumMessageSize=1048576,MessageRetentionPeriod=1209600",
    ]);
  });

  test("is doubtful if its dead-letter queue deletes letters before the 14 days that SQS allows", async () => {
    const kept = (seconds: string) => ({
      "jobs.fifo": { ...usual, ...redrive("dead.fifo", 5) },
      "dead.fifo": { FifoQueue: "true", MessageRetentionPeriod: seconds },
    });
    expect(await look("jobs.fifo", kept("345600"), ": dead letters")).toEqual([
      "warn",
      "dead.fifo deletes dead letters after 345600 s, not after 14 days",
      `aws sqs set-queue-attributes --queue-url ${url("dead.fifo")} --attributes MessageRetentionPeriod=1209600`,
    ]);
    expect((await look("jobs.fifo", kept("1209600"), ": dead letters"))[0]).toBe("ok");
  });

  test("is doubtful if it, or its dead-letter queue, refuses what SQS takes", async () => {
    const small = { MaximumMessageSize: "262144" };
    const refuses = (what: string) =>
      `its MaximumMessageSize is 262144: it refuses larger ${what}, up to keelson's 1048576 bytes`;
    const fix = (name: string) =>
      `aws sqs set-queue-attributes --queue-url ${url(name)} --attributes MaximumMessageSize=1048576`;
    expect(await look("jobs.fifo", { "jobs.fifo": { ...usual, ...small } })).toEqual([
      "warn",
      refuses("events and jobs"),
      fix("jobs.fifo"),
    ]);
    const exact = { ...usual, MaximumMessageSize: "1048576" };
    expect((await look("jobs.fifo", { "jobs.fifo": exact }))[0]).toBe("ok");
    const attributes = {
      "jobs.fifo": { ...usual, ...redrive("dead.fifo", 5) },
      "dead.fifo": { FifoQueue: "true", ...small },
    };
    expect(await look("jobs.fifo", attributes, ": dead letters")).toEqual([
      "warn",
      refuses("dead letters"),
      fix("dead.fifo"),
    ]);
  });

  test.each<[FairMode, number | undefined, string[]]>([
    ["off", undefined, ["ok", "none"]],
    ["off", 0, ["ok", "none"]],
    [
      "off",
      3,
      [
        ...["fail", "6 messages, and KEELSON_FAIR_JOBS is off: nothing reads these"],
        "export KEELSON_FAIR_JOBS=receive",
      ],
    ],
    [
      "receive",
      3,
      [
        "warn",
        "6 messages, and KEELSON_FAIR_JOBS is receive: roll back further once the queue is empty",
      ],
    ],
    [
      "send",
      3,
      [
        "ok",
        "6 messages, and KEELSON_FAIR_JOBS is send: go back to receive before an older version",
      ],
    ],
  ])(
    "that is fair is checked with %s for %s messages that older versions do not read",
    async (mode, waiting, outcome) => {
      const attributes = {
        ApproximateNumberOfMessages: `${waiting}`,
        ApproximateNumberOfMessagesNotVisible: `${waiting}`,
        ApproximateNumberOfMessagesDelayed: "0",
      };
      const place = await at("sqs", queues(waiting === undefined ? {} : { fair: attributes }));
      const client = new SQSClient({ ...place.options, useQueueUrlAsEndpoint: false });
      const check = fairCheck(withClient(place, client), {
        mode,
        queue: neededQueue("fair-jobs", "fair"),
      });
      expect(await came([check], "queue fair: messages that older versions do not read")).toEqual(
        outcome,
      );
    },
  );

  test.each<[number | string, string]>([
    [2, "warn"],
    [3, "ok"],
    ["6", "ok"],
    [1_000, "ok"],
  ])("that allows %s receives of a message is %s", async (count, status) => {
    const attributes = {
      "jobs.fifo": { ...usual, ...redrive("dead.fifo", count) },
      "dead.fifo": { FifoQueue: "true" },
    };
    const [found, message, fix] = await look("jobs.fifo", attributes, ": dead letters");
    expect([found, fix]).toEqual([
      status,
      status === "ok" ? undefined : setAttributes("jobs.fifo", redrive("dead.fifo", 5)),
    ]);
    expect(message).toContain(`${count} attempts`);
  });
});

describe("a bus in AWS", () => {
  interface RuleGiven {
    readonly Name: string;
    readonly State?: string;
    readonly EventPattern?: string;
    readonly targets?: readonly string[];
  }
  /** Rules come in two pages. */
  const rulesOf = (rules: readonly RuleGiven[]): Answers => ({
    DescribeEventBus: { Name: "b", Arn: "x" },
    ListRules: ({ NextToken }) =>
      NextToken === undefined
        ? { Rules: rules.slice(0, 1), NextToken: "more" }
        : { Rules: rules.slice(1) },
    ListTargetsByRule: ({ Rule }) => ({
      Targets: rules
        .find(({ Name }) => Name === Rule)
        ?.targets?.map((Arn, index) => ({ Id: String(index), Arn })),
    }),
  });
  const look = async (
    answers: Answers,
    what: string,
    attributes: Record<string, string> | "missing" = {},
    isEmulator = false,
    consumed: readonly string[] = ["cup.filled", "cup.emptied"],
  ) => {
    const events = attributes === "missing" ? queues({}) : queues({ events: attributes });
    const place = await at("events", { ...answers, ...events }, isEmulator);
    const timing = { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000 };
    const sqsPlace = { ...place, aws: placeOf("sqs", {}, timing).aws };
    const client = new SQSClient({ ...place.options, useQueueUrlAsEndpoint: false });
    const queue =
      consumed.length === 0
        ? undefined
        : askedQueue(withClient(place, client), neededQueue("events", "events"));
    const bus = {
      name: "b",
      variable: "KEELSON_EVENT_BUS",
      source: "my.app",
      rule: eventRule("my.app"),
      consumed,
      isFair: false,
    };
    return came(
      busChecks(withClient(place, new EventBridgeClient(place.options)), bus, {
        queue,
        place: sqsPlace,
      }),
      what,
    );
  };
  const source = JSON.stringify({ source: ["my.app"] });
  const targets = [arn("events")];

  test.each<[string, readonly RuleGiven[], string]>([
    [
      "a rule for the source",
      [{ Name: "all", State: "ENABLED", EventPattern: source, targets }],
      "all",
    ],
    ["a rule for everything", [{ Name: "any", EventPattern: "{}", targets }], "any"],
    [
      "a rule a type",
      [
        { Name: "one", EventPattern: JSON.stringify({ "detail-type": ["cup.filled"] }), targets },
        {
          Name: "two",
          EventPattern: JSON.stringify({ "detail-type": [{ prefix: "cup.e" }] }),
          targets,
        },
      ],
      "one, two",
    ],
  ])("with %s delivers the events to the queue", async (_, rules, names) => {
    expect(await look(rulesOf(rules), "bus b: rules")).toEqual([
      "ok",
      `${names} to ${arn("events")}`,
    ]);
  });

  const put = [
    `aws events put-rule --event-bus-name b --name my-app-events --event-pattern '{"source":["my.app"]}'`,
    `aws events put-targets --event-bus-name b --rule my-app-events --targets Id=events,Arn=${arn("events")}`,
  ];
  test.each<[string, readonly RuleGiven[], string, readonly string[]]>([
    ["no rule", [], "cup.filled, cup.emptied", put],
    ["a rule of a schedule", [{ Name: "cron", targets }], "cup.filled, cup.emptied", put],
    [
      "another source",
      [{ Name: "x", EventPattern: '{"source":["other"]}', targets }],
      "cup.filled, cup.emptied",
      put,
    ],
    [
      "another queue",
      [{ Name: "x", EventPattern: source, targets: [arn("other")] }],
      "cup.filled, cup.emptied",
      put,
    ],
    ["no target", [{ Name: "x", EventPattern: source }], "cup.filled, cup.emptied", put],
    [
      "a rule for one type",
      [{ Name: "x", EventPattern: JSON.stringify({ "detail-type": ["cup.filled"] }), targets }],
      "cup.emptied",
      put,
    ],
  ])(
    "with %s loses events, and gets the commands that repair it",
    async (_, rules, lost, fixes) => {
      const message = `nothing brings ${lost} to ${arn("events")}`;
      expect(await look(rulesOf(rules), "bus b: rules")).toEqual(["fail", message, ...fixes]);
    },
  );

  test("with a disabled rule gets the command that enables it", async () => {
    const rules = [{ Name: "off", State: "DISABLED", EventPattern: source, targets }];
    expect(await look(rulesOf(rules), "bus b: rules")).toEqual([
      "fail",
      `nothing brings cup.filled, cup.emptied to ${arn("events")}: off is disabled`,
      "aws events enable-rule --event-bus-name b --name off",
    ]);
  });

  test("that cannot be inspected is reported once", async () => {
    const denied = { DescribeEventBus: { error: "AccessDeniedException" } };
    expect((await look(denied, "bus b"))[1]).toBe(
      "the credentials may not call events:DescribeEventBus on b",
    );
    expect((await look(denied, "bus b: rules"))[1]).toBe("not checked: see bus b");
    expect((await look({}, "bus b: rules", "missing"))[1]).toBe("not checked: see bus b");
    expect(
      (await look({ DescribeEventBus: { error: "ResourceNotFoundException" } }, "bus b"))[1],
    ).toBe("it does not exist");
    const others = { ListRules: {}, ListTargetsByRule: {} };
    expect((await look({ ...rulesOf([]), ...others }, "bus b: rules"))[0]).toBe("fail");
    const without = { ...rulesOf([{ Name: "x", EventPattern: source }]), ListTargetsByRule: {} };
    expect((await look(without, "bus b: rules"))[0]).toBe("fail");
  });

  const policy = (...Statement: object[]) => ({
    Policy: JSON.stringify({ Version: "2012-10-17", Statement }),
  });
  const allow = {
    Effect: "Allow",
    Principal: { Service: "events.amazonaws.com" },
    Action: "sqs:SendMessage",
    Resource: "x",
  };
  const from = (name: string, ...Value: readonly string[]) => ({
    ...allow,
    Condition: { ArnEquals: { [name]: Value } },
  });
  const needed = policy(
    {
      ...from("aws:SourceArn", "arn:aws:events:eu-west-1:123456789012:rule/b/my-app-events"),
      Resource: arn("events"),
    },
    {
      ...{ Effect: "Deny", Principal: "*", Action: "sqs:*", Resource: arn("events") },
      Condition: { Bool: { "aws:SecureTransport": "false" } },
    },
  );
  const outcomes = {
    ok: ["ok", "EventBridge may send into it"],
    warn: [
      "warn",
      "a rule of any AWS account may send into it, so that events can be forged",
      setAttributes("events", needed),
    ],
    fail: [
      "fail",
      "EventBridge may not send into it, so that events are lost",
      setAttributes("events", needed),
    ],
  };
  const limited = from("aws:SourceArn", "a");
  test.each<[string, Record<string, string>, keyof typeof outcomes]>([
    ["lets rules send", policy(limited), "ok"],
    ["lets an account send", policy(from("AWS:SourceAccount", "1")), "ok"],
    ["is one statement", { Policy: JSON.stringify({ Statement: limited }) }, "ok"],
    [
      "lists those who may",
      policy({ ...limited, Principal: { Service: ["x", "events.amazonaws.com"] } }),
      "ok",
    ],
    ["lets EventBridge send", policy(allow), "warn"],
    ["also lets EventBridge send", policy(limited, allow), "warn"],
    ["has another condition", policy(from("aws:PrincipalArn", "a")), "warn"],
    [
      "lets everybody do everything",
      policy({ Effect: "Allow", Principal: "*", Action: ["SQS:*"] }),
      "warn",
    ],
    ["denies", policy({ ...allow, Effect: "Deny" }), "fail"],
    ["is for others", policy({ ...allow, Principal: { Service: "sns.amazonaws.com" } }), "fail"],
    ["is for reading", policy({ ...allow, Action: "sqs:ReceiveMessage" }), "fail"],
    ["says nothing", policy({ Effect: "Allow" }), "fail"],
    ["has no statement", { Policy: "{}" }, "fail"],
    ["is empty", { Policy: "" }, "fail"],
    ["is not there", {}, "fail"],
  ])("is checked for its queue's policy that %s", async (_, attributes, status) => {
    expect(await look(rulesOf([]), "queue events: policy", attributes)).toEqual(outcomes[status]);
  });

  test("is reported if its queue is encrypted with a key that EventBridge may not use", async () => {
    const [status, message, ...fixes] = await look(rulesOf([]), "queue events: policy", {
      ...policy(allow),
      KmsMasterKeyId: "alias/aws/sqs",
    });
    expect([status, message]).toEqual([
      "fail",
      "it is encrypted with alias/aws/sqs, which EventBridge may not use",
    ]);
    expect(fixes).toEqual([
      setAttributes("events", { KmsMasterKeyId: "" }),
      setAttributes("events", { SqsManagedSseEnabled: "true" }),
    ]);
    expect((await look(rulesOf([]), "queue events: policy", "missing"))[1]).toBe(
      "not checked: see queue events",
    );
    expect((await look(rulesOf([]), "queue events: policy", {}, true))[0]).toBe("skip");
  });
});

describe("AWS itself", () => {
  const given = { signal: AbortSignal.timeout(1_000), timeoutMs: 1_000 };

  test("is named when no endpoint is set, and its commands need no endpoint option", () => {
    const place = placeOf("sqs", {}, given);
    expect([place.shown, place.isEmulator]).toEqual(["AWS's own endpoint of sqs", false]);
    expect(place.aws("create-queue", { "queue-name": "it's" })).toBe(
      `aws sqs create-queue --queue-name 'it'\\''s'`,
    );
  });

  const call = {
    service: "sqs",
    operation: "Op",
    resource: "r",
    shown: "AWS's own endpoint of sqs",
    isEmulator: false,
  };
  const outcome = (cause: unknown) => outcomeOf(new CallError(call, cause));

  test("is reported when it cannot be reached, and an unknown operation is a failure", () => {
    const lost = Object.assign(new Error("getaddrinfo ENOTFOUND x"), { code: "ENOTFOUND" });
    expect(outcome(lost)).toMatchObject({
      message: "AWS's own endpoint of sqs does not answer (ENOTFOUND)",
      fix: [],
    });
    const behind = new Error("it cannot be read", {
      cause: Object.assign(lost, { cause: undefined }),
    });
    expect(outcome(behind).message).toContain("ENOTFOUND");
    const unknown = Object.assign(new Error("what?"), {
      name: "UnknownOperationException",
      $metadata: {},
      cause: lost,
    });
    expect(outcome(unknown)).toMatchObject({
      status: "fail",
      message: "sqs Op of r failed: UnknownOperationException: what?",
    });
    const missing = Object.assign(new Error("none"), { name: "CredentialsProviderError" });
    expect(outcome(missing)).toMatchObject({
      status: "skip",
      message: "not checked: see credentials",
    });
    expect(outcome("odd").message).toBe("sqs Op of r failed: odd");
    expect(outcomeOf("odd").message).toBe("it cannot be checked: odd");
  });

  test("is distinguished from an emulator, whose missing operations are skipped", () => {
    const lacking = (name: string, httpStatusCode = 400) =>
      outcomeOf(
        new CallError(
          { ...call, isEmulator: true },
          Object.assign(new Error("no"), { name, $metadata: { httpStatusCode } }),
        ),
      );
    for (const finding of [
      lacking("UnknownOperationException"),
      lacking("InvalidAction"),
      lacking("InternalFailure", 501),
    ]) {
      expect(finding).toMatchObject({
        status: "skip",
        message: "not checked: the emulator does not know Op",
      });
    }
    expect(lacking("InternalFailure", 500).status).toBe("fail");
  });
});
