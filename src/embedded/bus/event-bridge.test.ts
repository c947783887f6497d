import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSqs, type Sqs } from "../queues/sqs.ts";
import type { CallContext } from "../service/service.ts";
import { type EventBridge, openEventBridge } from "./event-bridge.ts";

let directory: string;
let path: string;
let sqs: Sqs;
let bridge: EventBridge;
const faults: unknown[] = [];
const open = () =>
  openEventBridge({ sqs, path, region: "eu-west-1", reportFault: (fault) => faults.push(fault) });
beforeEach(() => {
  faults.length = 0;
  directory = mkdtempSync(join(tmpdir(), "keelson-event-bridge-"));
  path = join(directory, "event-bridge.jsonl");
  sqs = openSqs();
  bridge = open();
});
afterEach(() => {
  bridge.close();
  sqs.close();
  rmSync(directory, { recursive: true });
});

const context: CallContext = {
  nowMs: 1_700_000_000_999,
  endpoint: "http://here",
  signal: new AbortController().signal,
};
const call = (operation: string, input: object) => bridge.call(operation, { ...input }, context);
const QueueUrl = "http://here/000000000000/q";
const createQueue = (Attributes: object = {}, QueueName = "q") =>
  sqs.call("CreateQueue", { QueueName, Attributes }, context);
const arn = (name: string) => `arn:aws:sqs:eu-west-1:000000000000:${name}`;
const EventPattern = JSON.stringify({ source: ["shop"] });
const putRule = (more: object = {}) => call("PutRule", { Name: "r", EventPattern, ...more });
const putTarget = (more: object = {}) =>
  call("PutTargets", { Rule: "r", Targets: [{ Id: "t", Arn: arn("q"), ...more }] });
const entry = { Source: "shop", DetailType: "T", Detail: "{}" };
const put = async (...entries: object[]) =>
  (await call("PutEvents", { Entries: entries })) as {
    FailedEntryCount: number;
    Entries: { EventId?: string; ErrorCode?: string; ErrorMessage?: string }[];
  }; // what PutEvents answers
const received = async () => {
  const answer = await sqs.call("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10 }, context);
  return ((answer as { Messages?: { Body: string }[] }).Messages ?? []).map(({ Body }) =>
    JSON.parse(Body),
  ); // what it answers
};

test("buses, rules and targets survive a restart", async () => {
  await createQueue();
  await call("CreateEventBus", { Name: "kept", Description: "about it" });
  await call("CreateEventBus", { Name: "gone" });
  await call("DeleteEventBus", { Name: "gone" });
  for (const EventBusName of ["kept", "default"]) {
    await putRule({ EventBusName, Description: "rule" });
    await putRule({ EventBusName, Name: "gone" });
    await call("DeleteRule", { EventBusName, Name: "gone" });
  }
  await call("PutTargets", {
    Rule: "r",
    EventBusName: "kept",
    Targets: [{ Id: "t", Arn: arn("q"), InputPath: "$.detail" }],
  });

  bridge = open(); // the one before was killed: nobody closed it
  expect(await call("ListEventBuses", {})).toEqual({
    EventBuses: [
      {
        Name: "default",
        Arn: "arn:aws:events:eu-west-1:000000000000:event-bus/default",
        CreationTime: 0,
      },
      {
        Name: "kept",
        Arn: "arn:aws:events:eu-west-1:000000000000:event-bus/kept",
        CreationTime: 1_700_000_000.999,
        Description: "about it",
      },
    ],
  });
  expect(await call("ListRules", {})).toEqual({
    Rules: [
      {
        Name: "r",
        Arn: "arn:aws:events:eu-west-1:000000000000:rule/r",
        EventPattern,
        State: "ENABLED",
        EventBusName: "default",
        Description: "rule",
      },
    ],
  });
  expect(await call("ListRules", { EventBusName: "kept", NamePrefix: "x" })).toEqual({ Rules: [] });
  await put({ ...entry, EventBusName: "kept", Detail: '{"n":1}' });
  expect(await received()).toEqual([{ n: 1 }]);
});

test("names a file that the embedded stack did not write", () => {
  writeFileSync(path, "{\n");
  expect(open).toThrow(`${path}:1 was not written by the embedded stack`);
});

test("works without a path and a region", async () => {
  const plain = openEventBridge({ sqs });
  await plain.call("PutRule", { Name: "r", EventPattern }, context);
  await plain.call("PutTargets", { Rule: "r", Targets: [{ Id: "t", Arn: arn("none") }] }, context);
  expect(await plain.call("PutEvents", { Entries: [entry] }, context)).toMatchObject({
    FailedEntryCount: 0,
  });
  plain.close();
});

test("an event without time and resources gets the time of the call and no resources", async () => {
  await createQueue();
  await putRule();
  await putTarget();
  await put(entry);
  expect(await received()).toMatchObject([
    { time: "2023-11-14T22:13:20Z", resources: [], region: "eu-west-1" },
  ]);
});

test("reports a queue that does not take an event, and delivers to the others", async () => {
  await createQueue();
  await putRule();
  await call("PutTargets", {
    Rule: "r",
    Targets: [
      { Id: "none", Arn: arn("none") },
      { Id: "t", Arn: arn("q") },
    ],
  });
  expect((await put(entry)).FailedEntryCount).toBe(0);
  expect(await received()).toHaveLength(1);
  expect(faults).toMatchObject([
    {
      message: `An event of the bus default did not get into ${arn("none")}`,
      cause: { message: /does not exist/ },
    },
  ]);
});

test("sends null when the InputPath matches nothing", async () => {
  await createQueue();
  await putRule();
  await putTarget({ InputPath: "$.detail.a.b" });
  await put({ ...entry, Detail: '{"a":7}' }, { ...entry, Detail: '{"a":{"b":"c"}}' });
  expect(await received()).toEqual([null, "c"]);
});

test("takes the message group from a path of the event, and reports one that matches no string", async () => {
  await createQueue();
  await putRule();
  await putTarget({ SqsParameters: { MessageGroupId: "$.detail.group" } });
  await put(
    { ...entry, Detail: '{"n":1}' },
    { ...entry, Detail: '{"n":2,"group":7}' },
    { ...entry, Detail: '{"n":3,"group":"acme"}' },
  );
  expect(await received()).toMatchObject([{ detail: { n: 3 } }]);
  expect(faults).toMatchObject(
    [1, 2].map(() => ({
      cause: { message: "its MessageGroupId $.detail.group matches no string" },
    })),
  );
});

test("lists targets as they were put, and removes them one by one", async () => {
  await putRule();
  await putTarget({ Arn: arn("q.fifo"), SqsParameters: { MessageGroupId: "g" } });
  await putTarget({ Id: "u", SqsParameters: {} });
  await putRule({ State: "DISABLED" });
  const first = { Id: "t", Arn: arn("q.fifo"), SqsParameters: { MessageGroupId: "g" } };
  expect(await call("ListTargetsByRule", { Rule: "r" })).toEqual({
    Targets: [first, { Id: "u", Arn: arn("q") }],
  });
  await call("RemoveTargets", { Rule: "r", Ids: ["u", "never there"] });
  expect(await call("ListTargetsByRule", { Rule: "r" })).toEqual({ Targets: [first] });
});

test.each<[object, string]>([
  [{ ...entry, Source: "" }, "InvalidArgument"],
  [{ ...entry, Source: 7 }, "InvalidArgument"],
  [{ ...entry, Time: 1e15 }, "InvalidArgument"],
  [{ ...entry, Detail: "7" }, "MalformedDetail"],
  [{ ...entry, Detail: "{" }, "MalformedDetail"],
  [{ ...entry, EventBusName: "none" }, "ResourceNotFoundException"],
])("rejects the entry %j with %s, and takes the next one", async (wrong, ErrorCode) => {
  const answer = await put(wrong, entry);
  expect(answer).toMatchObject({ FailedEntryCount: 1, Entries: [{ ErrorCode }, {}] });
  expect(answer.Entries[1]?.EventId).toBeTruthy();
});

describe("refuses the invalid call", () => {
  const target = { Id: "t", Arn: arn("q") };
  const targets = (more: object) => ({ Rule: "r", Targets: [{ ...target, ...more }] });
  const groupOf = (MessageGroupId: string) => ({ SqsParameters: { MessageGroupId } });
  test.each<[string, object, string]>([
    ["Unknown", {}, "has no operation"],
    ["toString", {}, "has no operation"],
    ["CreateEventBus", {}, "Value at 'Name'"],
    ["CreateEventBus", { Name: "a/b" }, "has to match"],
    ["CreateEventBus", { Name: "a", Description: 7 }, "'Description' must be a string"],
    ["DeleteEventBus", { Name: "b" }, "contains rules"],
    ["PutRule", { Name: "a b", EventPattern }, "has to match"],
    [
      "PutRule",
      { Name: "a", EventPattern, ScheduleExpression: "rate(1 minute)" },
      "no ScheduleExpression",
    ],
    ["PutRule", { Name: "a", EventPattern, State: "ON" }, "ENABLED or DISABLED"],
    ["PutTargets", { Rule: "r" }, "'targets' has to be a list"],
    ["PutTargets", { Rule: "r", Targets: [] }, "'targets' has to be a list"],
    ["PutTargets", { Rule: "r", Targets: [7] }, "has to be a structure"],
    ["PutTargets", targets({ Id: "" }), "Value at 'Id'"],
    [
      "PutTargets",
      targets({ Arn: "arn:aws:lambda:eu-west-1:000000000000:function:f" }),
      "ARNs of queues only",
    ],
    ["PutTargets", targets({ Input: "{}" }), "no Input"],
    ["PutTargets", targets({ InputTransformer: {} }), "no InputTransformer"],
    ["PutTargets", targets({ InputPath: "$.a[0]" }), "Invalid InputPath"],
    ["PutTargets", targets(groupOf("$.a[0]")), "Invalid MessageGroupId"],
    ["PutTargets", targets(groupOf("x".repeat(101))), "Invalid MessageGroupId"],
    ["RemoveTargets", { Rule: "r" }, "'ids' has to be a list"],
    ["RemoveTargets", { Rule: "r", Ids: [] }, "'ids' has to be a list"],
    ["PutEvents", {}, "1 to 10 entries"],
    ["PutEvents", { Entries: [7] }, "1 to 10 entries"],
    [
      "PutEvents",
      { Entries: [{ Resources: ["x".repeat(1_048_576)], Time: 1 }] },
      "exceeds the limit",
    ],
  ])("%s %j", async (operation, input, message) => {
    await call("CreateEventBus", { Name: "b" });
    await putRule({ EventBusName: "b" });
    await putRule();
    await expect(call(operation, input)).rejects.toThrow(message);
  });
});
