import { queueTimeoutSeconds } from "./functions.ts";
import type { NeededBus, NeededQueue, Needs } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, ref, substituted, type TemplatePart, type Value } from "./template.ts";

/** SQS keeps a message for 14 days at most, in seconds. */
const longestRetentionSeconds = 1_209_600;

/** Logical IDs. */
export const messageIds = {
  bus: "EventBus",
  rule: "EventRule",
  events: { queue: "EventQueue", dead: "EventDeadQueue" },
  jobs: { queue: "JobQueue", dead: "JobDeadQueue" },
} as const;

/** The bus and the queues of a server, with their rule and their policies. */
export function messageParts({ bus, events, jobs }: Needs): TemplatePart[] {
  const jobParts = jobs === undefined ? [] : [queuePart(jobs, [])];
  // What is consumed is declared: without a bus there is no queue of events.
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

/** What the rule cannot deliver goes to the dead-letter queue. */
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

/** A queue and its dead-letter queue, each with its policy. */
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

/** No account but this one, whose roles say who; and nothing without TLS. */
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
