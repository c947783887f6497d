// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { expect, test } from "vitest";
import { z } from "zod";
import {
  quiet,
  sheds,
  spades,
  statementsOf,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../app/server/server.ts";
import { mistakes } from "./check.ts";
import { needsOf } from "./needs.ts";

const handler = async () => undefined;
const input = z.object({});
const mail = defineFeature("mail", (r) => {
  r.table("letters", { partitionKey: "pk", tenant: true });
  r.receive("letter.bounced", { source: "aws.ses", detailType: "Bounce", input, handler });
  r.receive("letter.counted", { source: "aws.ses", detailType: "Bounce", input, handler });
});
const shop = defineFeature("shop", (r) => {
  r.receive("cart.paid", { source: "shop", detailType: "Paid", bus: "shops", input, handler });
});

test("events of others have a queue, a dead-letter queue, a rule for each kind, and a policy for these rules", () => {
  const { Resources, Outputs } = templateOf([mail, shop]);
  const rules = Object.entries(Resources).filter(([id]) => id.startsWith("ReceivedRule"));
  const target = {
    Id: "received",
    Arn: { "Fn::GetAtt": ["ReceivedQueue", "Arn"] },
    DeadLetterConfig: { Arn: { "Fn::GetAtt": ["ReceivedDeadQueue", "Arn"] } },
  };
  const name = { "Fn::Sub": expect.stringMatching(/^\$\{NamePrefix\}-received-[0-9a-f]{8}$/) };
  expect(rules.map(([, { Properties }]) => Properties)).toEqual([
    {
      Name: name,
      EventBusName: "default",
      EventPattern: { source: ["aws.ses"], "detail-type": ["Bounce"] },
      Targets: [target],
    },
    {
      Name: name,
      EventBusName: "shops",
      EventPattern: { source: ["shop"], "detail-type": ["Paid"] },
      Targets: [target],
    },
  ]);
  const sources = rules.map(([id]) => ({ "Fn::GetAtt": [id, "Arn"] }));
  expect(Resources["ReceivedQueuePolicy"]?.Properties).toMatchObject({
    PolicyDocument: {
      Statement: [
        {
          Effect: "Allow",
          Principal: { Service: "events.amazonaws.com" },
          Action: "sqs:SendMessage",
          Condition: { ArnEquals: { "aws:SourceArn": sources } },
        },
        { Effect: "Deny", Condition: { Bool: { "aws:SecureTransport": "false" } } },
      ],
    },
  });
  expect(Resources["ReceivedQueue"]?.Properties).toMatchObject({
    QueueName: { "Fn::Sub": "${NamePrefix}-received" },
    RedrivePolicy: { maxReceiveCount: 5 },
  });
  expect(Object.keys(Outputs)).toEqual(
    expect.arrayContaining(["ReceivedQueueUrl", "ReceivedQueueArn"]),
  );
});

test("the function of queues reads them, with an alarm on the dead letters, and jobs go elsewhere", () => {
  const template = templateOf([mail, sheds, spades]);
  const { Resources } = template;
  expect(Resources["QueueEventSourceMappingSQSReceivedQueue"]).toBeDefined();
  expect(Resources["DeadReceivedAlarm"]).toBeDefined();
  expect(JSON.stringify(Resources["QueueLambdaFunction"])).toContain(
    '"KEELSON_RECEIVED_QUEUE":{"Ref":"ReceivedQueue"}',
  );
  const statements = statementsOf(template, "QueueRole");
  const resourcesOf = (sid: string) =>
    JSON.stringify(statements.find(({ Sid }) => Sid === sid)?.Resource);
  expect(resourcesOf("Consume")).toContain('"ReceivedQueue"');
  expect(resourcesOf("DeadLetter")).toContain('"ReceivedDeadQueue"');
  expect(resourcesOf("Enqueue")).not.toContain("Received");
  expect(resourcesOf("WriteTables")).toContain("LettersTable");
});

test("a server that only receives has neither bus nor outbox, and one that does not receive has nothing of it", () => {
  const { Resources } = templateOf([mail]);
  const ids = Object.keys(Resources);
  expect(ids).toContain("QueueLambdaFunction");
  expect(ids.filter((id) => /^(EventBus|JobQueue|OutboxTable|Sweep|Stream)/.test(id))).toEqual([]);
  const [rule] = ids.filter((id) => id.startsWith("ReceivedRule"));
  expect(JSON.stringify(Resources["ReceivedQueuePolicy"])).toContain(
    `{"aws:SourceArn":{"Fn::GetAtt":["${rule}","Arn"]}}`,
  );
  expect(JSON.stringify(templateOf([sheds, spades, quiet]))).not.toMatch(/received/i);
});

test("names leave room for those of the rules", () => {
  expect(templateOf([mail]).Parameters["NamePrefix"]).toMatchObject({ MaxLength: 46 });
  const dynamodb = { prefix: "p".repeat(50) };
  expect(() => templateOf([mail], {}, { dynamodb })).toThrow("longer than 46 characters");
});

test("a template without the queue, or without the rule of an event, does not fit", () => {
  const server = serverInternals(buildServer({ features: [mail] }));
  const { ReceivedQueue: _, ...Resources } = templateOf([mail]).Resources;
  expect(mistakes(server, { ...templateOf([mail]), Resources })).toEqual([
    "the server needs ReceivedQueue, which is missing in the template",
  ]);
  expect(mistakes(server, templateOf([mail]))).toEqual([]);
  const both = serverInternals(buildServer({ features: [mail, shop] }));
  expect(mistakes(both, templateOf([mail]))).toEqual([
    expect.stringMatching(
      /^the server needs ReceivedRule[0-9a-f]{8}, which is missing in the template$/,
    ),
  ]);
  expect(needsOf(server).received?.queue.name).toBe("keelson-received");
});
