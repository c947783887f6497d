import { queueTimeoutSeconds } from "./functions.ts";
import type { NeededBus, NeededQueue, Needs } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, ref, substituted, type TemplatePart, type Value } from "./template.ts";

/** Longest retention that SQS allows, 14 days, in seconds. */
const longestRetentionSeconds = 1_209_600;

export const messageIds = {
  bus: "EventBus",
  rule: "EventRule",
  events: { queue: "EventQueue", dead: "EventDeadQueue" },
  jobs: { queue: "JobQueue", dead: "JobDeadQueue" },
} as const;

export function messageParts({ bus, events, jobs }: Needs): TemplatePart[] {
  const jobParts = jobs === undefined ? [] : [queuePart(jobs, [])];
  // Consumers only consume declared events, so without a bus there is no event queue.
  if (bus === undefined) return jobParts;
  if (events === undefined) return [busPart(bus), ...jobParts];
  return [busPart(bus), rulePart(bus), queuePart(events, [fromRule]), ...jobParts];
}

function busPart({ name, variable }: NeededBus): TemplatePart {
  const id = messageIds.bus;
  return {
    Resources: { [id]: { Type: "AWS::Events::EventBus", Properties: { Name: substituted(name) } } },
    Outputs: {
      [`${id}Name`]: { Description: variable, Value: ref(id) },
      [`${id}Arn`]: { Description: `The ARN of ${variable}`, Value: attributeOf(id, "Arn") },
    },
  };
}

/** Creates the rule. Events that it cannot deliver are sent to the dead-letter queue. */
function rulePart({ rule }: NeededBus): TemplatePart {
  const { queue, dead } = messageIds.events;
  return {
    Resources: {
      [messageIds.rule]: {
        Type: "AWS::Events::Rule",
        Properties: {
          Name: rule.name,
          EventBusName: ref(messageIds.bus),
          EventPattern: rule.pattern,
          Targets: [
            {
              Id: rule.targetId,
              Arn: attributeOf(queue, "Arn"),
              DeadLetterConfig: { Arn: attributeOf(dead, "Arn") },
            },
          ],
        },
      },
    },
  };
}

function queuePart(queue: NeededQueue, allowed: readonly ((id: string) => Value)[]): TemplatePart {
  const ids = messageIds[queue.kind];
  const { name, deadName, isOrdered, maxReceives, variable } = queue;
  const common = {
    ...(isOrdered ? { FifoQueue: true } : {}),
    KmsMasterKeyId: withCustomerKey(ref("CustomerKeyArn")),
    SqsManagedSseEnabled: withCustomerKey(false, true),
  };
  return {
    Resources: {
      [ids.queue]: {
        Type: "AWS::SQS::Queue",
        Properties: {
          QueueName: substituted(name),
          ...common,
          VisibilityTimeout: Math.max(queue.visibilitySeconds, 6 * queueTimeoutSeconds),
          RedrivePolicy: {
            deadLetterTargetArn: attributeOf(ids.dead, "Arn"),
            maxReceiveCount: maxReceives,
          },
        },
      },
      [ids.dead]: {
        Type: "AWS::SQS::Queue",
        Properties: {
          QueueName: substituted(deadName),
          ...common,
          MessageRetentionPeriod: longestRetentionSeconds,
        },
      },
      ...policy(ids.queue, allowed),
      ...policy(ids.dead, allowed),
    },
    Outputs: {
      [`${ids.queue}Url`]: { Description: variable, Value: ref(ids.queue) },
      [`${ids.queue}Arn`]: {
        Description: `The ARN of ${variable}`,
        Value: attributeOf(ids.queue, "Arn"),
      },
    },
  };
}

/** Denies access without TLS. Other accounts have no access; roles grant it here. */
function policy(
  id: string,
  allowed: readonly ((id: string) => Value)[],
): NonNullable<TemplatePart["Resources"]> {
  return {
    [`${id}Policy`]: {
      Type: "AWS::SQS::QueuePolicy",
      Properties: {
        Queues: [ref(id)],
        PolicyDocument: {
          Version: "2012-10-17",
          Statement: [
            ...allowed.map((statement) => statement(id)),
            {
              Effect: "Deny",
              Principal: "*",
              Action: "sqs:*",
              Resource: attributeOf(id, "Arn"),
              Condition: { Bool: { "aws:SecureTransport": "false" } },
            },
          ],
        },
      },
    },
  };
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
