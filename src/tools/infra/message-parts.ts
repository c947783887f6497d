import { queueTimeoutSeconds } from "./functions.ts";
import type { NeededBus, NeededQueue, Needs } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import {
  attributeOf,
  output,
  policyDocument,
  ref,
  resource,
  substituted,
  type TemplatePart,
  type Value,
} from "./template.ts";

/** Longest retention that SQS allows, 14 days, in seconds. */
const longestRetentionSeconds = 1_209_600;

export const messageIds = {
  bus: "EventBus",
  rule: "EventRule",
  events: { queue: "EventQueue", dead: "EventDeadQueue" },
  jobs: { queue: "JobQueue", dead: "JobDeadQueue" },
} as const;

export function messageParts({ bus, events, jobs }: Needs): TemplatePart[] {
  return [
    ...(bus === undefined ? [] : busParts(bus)),
    // Consumers only consume declared events, so without a bus there is no event queue.
    ...(bus === undefined || events === undefined
      ? []
      : [rulePart(bus), ...queueParts(events, fromRule)]),
    ...(jobs === undefined ? [] : queueParts(jobs)),
  ];
}

function busParts({ name, variable }: NeededBus): TemplatePart[] {
  const id = messageIds.bus;
  return [
    resource(id, "AWS::Events::EventBus", { Name: substituted(name) }),
    output(`${id}Name`, variable, ref(id)),
    output(`${id}Arn`, `The ARN of ${variable}`, attributeOf(id, "Arn")),
  ];
}

/** Events that the rule cannot deliver are sent to the dead-letter queue. */
function rulePart({ rule: { name, pattern, targetId } }: NeededBus): TemplatePart {
  const { queue, dead } = messageIds.events;
  return resource(messageIds.rule, "AWS::Events::Rule", {
    Name: name,
    EventBusName: ref(messageIds.bus),
    EventPattern: pattern,
    Targets: [
      {
        Id: targetId,
        Arn: attributeOf(queue, "Arn"),
        DeadLetterConfig: { Arn: attributeOf(dead, "Arn") },
      },
    ],
  });
}

type Allowed = (id: string) => Value;

function queueParts(wanted: NeededQueue, ...allowed: readonly Allowed[]): TemplatePart[] {
  const { name, deadName, isOrdered, maxReceives, variable, visibilitySeconds } = wanted;
  const { queue, dead } = messageIds[wanted.kind];
  const common = {
    FifoQueue: isOrdered || undefined,
    KmsMasterKeyId: withCustomerKey(ref("CustomerKeyArn")),
    SqsManagedSseEnabled: withCustomerKey(false, true),
  };
  return [
    resource(queue, "AWS::SQS::Queue", {
      QueueName: substituted(name),
      ...common,
      VisibilityTimeout: Math.max(visibilitySeconds, 6 * queueTimeoutSeconds),
      RedrivePolicy: {
        deadLetterTargetArn: attributeOf(dead, "Arn"),
        maxReceiveCount: maxReceives,
      },
    }),
    resource(dead, "AWS::SQS::Queue", {
      QueueName: substituted(deadName),
      ...common,
      MessageRetentionPeriod: longestRetentionSeconds,
    }),
    policyPart(queue, allowed),
    policyPart(dead, allowed),
    output(`${queue}Url`, variable, ref(queue)),
    output(`${queue}Arn`, `The ARN of ${variable}`, attributeOf(queue, "Arn")),
  ];
}

/** Denies access without TLS. Roles grant access in this account; other accounts have none. */
function policyPart(id: string, allowed: readonly Allowed[]): TemplatePart {
  return resource(`${id}Policy`, "AWS::SQS::QueuePolicy", {
    Queues: [ref(id)],
    PolicyDocument: policyDocument(...allowed.map((statement) => statement(id)), {
      Effect: "Deny",
      Principal: "*",
      Action: "sqs:*",
      Resource: attributeOf(id, "Arn"),
      Condition: { Bool: { "aws:SecureTransport": "false" } },
    }),
  });
}

function fromRule(id: string): Value {
  return {
    Effect: "Allow",
    Principal: { Service: "events.amazonaws.com" },
    Action: "sqs:SendMessage",
    Resource: attributeOf(id, "Arn"),
    Condition: { ArnEquals: { "aws:SourceArn": attributeOf(messageIds.rule, "Arn") } },
  };
}
