import { expect, test } from "vitest";
import { neededQueue } from "../../infra/needs.ts";
import { placeOf } from "./place.ts";
import { policyCheck } from "./queue-policy.ts";

test("the command for a policy allows the rules of the default bus and of others, and only with TLS", async () => {
  const place = placeOf("sqs", {}, { signal: AbortSignal.timeout(10_000), timeoutMs: 10_000 });
  const arn = "arn:aws-cn:sqs:cn-north-1:123456789012:received";
  const queue = {
    name: "queue received",
    wanted: neededQueue("received", "received"),
    find: async () => ({ url: "https://queue", arn, attributes: {} }),
  };
  const rules = [
    { bus: "default", name: "received-1" },
    { bus: "aws.partner/shop.example/7", name: "received-2" },
  ];
  const { status, fix } = await policyCheck(place, queue, rules).run();
  const [, policy = ""] = /--attributes '(.*)'$/.exec(fix.join("\n")) ?? [];
  expect([status, JSON.parse(JSON.parse(policy).Policy).Statement]).toEqual([
    "fail",
    [
      {
        Effect: "Allow",
        Principal: { Service: "events.amazonaws.com" },
        Action: "sqs:SendMessage",
        Resource: arn,
        Condition: {
          ArnEquals: {
            "aws:SourceArn": [
              "arn:aws-cn:events:cn-north-1:123456789012:rule/received-1",
              "arn:aws-cn:events:cn-north-1:123456789012:rule/aws.partner/shop.example/7/received-2",
            ],
          },
        },
      },
      {
        Effect: "Deny",
        Principal: "*",
        Action: "sqs:*",
        Resource: arn,
        Condition: { Bool: { "aws:SecureTransport": "false" } },
      },
    ],
  ]);
});
