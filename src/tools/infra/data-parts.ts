import { outboxTable } from "../../app/handlers/table.ts";
import { deadLetterSeconds, queueSeconds, type ReceivedRule } from "../../aws/messaging/rules.ts";
import { attributeDefinitions, indexDescription, keySchema } from "../../aws/tables/tables.ts";
import { serviceSizes } from "../../base/sizes/service-sizes.ts";
import { queueTimeoutSeconds } from "./functions.ts";
import type { NeededBus, NeededQueue, NeededTable, Needs } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import {
  arnRef,
  attributeOf,
  logicalId,
  output,
  policyDocument,
  ref,
  resource,
  substituted,
  type TemplatePart,
  type Value,
} from "./template.ts";

export const tableType = "AWS::DynamoDB::Table";

export function tableId(name: string) {
  return logicalId(name, "Table");
}

export const messageIds = {
  bus: "EventBus",
  rule: "EventRule",
  events: { queue: "EventQueue", dead: "EventDeadQueue" },
  jobs: { queue: "JobQueue", dead: "JobDeadQueue" },
  "fair-jobs": { queue: "FairJobQueue", dead: "FairJobDeadQueue" },
  received: { queue: "ReceivedQueue", dead: "ReceivedDeadQueue" },
} as const;

/** A permanent table is recoverable, protected against deletion, and outlives the stack. */
export function tableParts(table: NeededTable) {
  const { name, tableName, variable, timeToLive, isLasting, stream, indexes } = table;
  const id = tableId(name);
  const properties = {
    TableName: substituted(tableName),
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: attributeDefinitions(table, ...indexes),
    KeySchema: keySchema(table),
    GlobalSecondaryIndexes: indexes.length === 0 ? undefined : indexes.map(indexDescription),
    TimeToLiveSpecification: timeToLive && { AttributeName: timeToLive, Enabled: true },
    StreamSpecification: stream && { StreamViewType: stream },
    ...(isLasting && {
      DeletionProtectionEnabled: ref("DeletionProtection"),
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    }),
    SSESpecification: withCustomerKey({
      SSEEnabled: true,
      SSEType: "KMS",
      KMSMasterKeyId: ref("CustomerKeyArn"),
    }),
  };
  const kept = { DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" } as const;
  return [
    resource(id, tableType, properties, isLasting ? kept : {}),
    output(`${id}Name`, variable, ref(id)),
    ...(stream === undefined
      ? []
      : [output(`${id}StreamArn`, `The stream of ${variable}`, attributeOf(id, "StreamArn"))]),
  ];
}

export function messageParts({ bus, events, jobs, fair, received }: Needs) {
  return [
    ...(bus === undefined ? [] : busParts(bus)),
    // Consumers only consume declared events, so without a bus there is no event queue.
    ...(bus === undefined || events === undefined
      ? []
      : [rulePart(bus), ...queueParts(events, fromRules(messageIds.rule))]),
    ...(jobs === undefined ? [] : queueParts(jobs)),
    ...(fair === undefined || fair.mode === "off" ? [] : queueParts(fair.queue)),
    ...(received === undefined ? [] : receivedParts(received)),
  ];
}

function busParts({ name, variable }: NeededBus) {
  const id = messageIds.bus;
  return [
    resource(id, "AWS::Events::EventBus", { Name: substituted(name) }),
    output(`${id}Name`, variable, ref(id)),
    output(`${id}Arn`, `The ARN of ${variable}`, arnRef(id)),
  ];
}

function rulePart({ rule: { name, pattern, targetId }, isFair }: NeededBus) {
  const { queue, dead } = messageIds.events;
  const target = { Id: targetId, Arn: arnRef(queue), DeadLetterConfig: { Arn: arnRef(dead) } };
  // A member of every envelope since the version that has this step.
  const grouped = isFair ? { SqsParameters: { MessageGroupId: "$.detail.group" } } : {};
  return resource(messageIds.rule, "AWS::Events::Rule", {
    Name: name,
    EventBusName: ref(messageIds.bus),
    EventPattern: pattern,
    Targets: [{ ...target, ...grouped }],
  });
}

/** Another event has another rule. */
export function receivedRuleId({ id }: ReceivedRule) {
  return `ReceivedRule${id}`;
}

function receivedParts({ queue, rules }: NonNullable<Needs["received"]>) {
  const ids = messageIds.received;
  const ruleParts = rules.map((rule) =>
    resource(receivedRuleId(rule), "AWS::Events::Rule", {
      Name: substituted(rule.name),
      EventBusName: rule.bus,
      EventPattern: rule.pattern,
      Targets: [
        { Id: rule.targetId, Arn: arnRef(ids.queue), DeadLetterConfig: { Arn: arnRef(ids.dead) } },
      ],
    }),
  );
  return [...ruleParts, ...queueParts(queue, fromRules(...rules.map(receivedRuleId)))];
}

/**
 * A fair queue outlives the stack: a template of an older version lacks it, and would delete
 * messages.
 */
const kept = { DeletionPolicy: "RetainExceptOnCreate", UpdateReplacePolicy: "Retain" } as const;

function queueParts(wanted: NeededQueue, allowed?: (id: string) => Value) {
  const { name, deadName, isOrdered, maxReceives, variable, visibilitySeconds } = wanted;
  const { queue, dead } = messageIds[wanted.kind];
  const policies = wanted.kind === "fair-jobs" ? kept : {};
  const common = {
    FifoQueue: isOrdered || undefined,
    // Set, because AWS documents two defaults, and a dead letter needs as much room.
    MaximumMessageSize: serviceSizes.sqsMessage.maxBytes,
    KmsMasterKeyId: withCustomerKey(ref("CustomerKeyArn")),
    SqsManagedSseEnabled: withCustomerKey(false, true),
  };
  return [
    resource(
      queue,
      "AWS::SQS::Queue",
      {
        QueueName: substituted(name),
        ...common,
        VisibilityTimeout: Math.max(visibilitySeconds, 6 * queueTimeoutSeconds),
        // Then SQS deletes a message that nothing reads, without a dead letter.
        MessageRetentionPeriod: queueSeconds,
        RedrivePolicy: { deadLetterTargetArn: arnRef(dead), maxReceiveCount: maxReceives },
      },
      policies,
    ),
    resource(
      dead,
      "AWS::SQS::Queue",
      {
        QueueName: substituted(deadName),
        ...common,
        MessageRetentionPeriod: deadLetterSeconds,
      },
      policies,
    ),
    ...[queue, dead].map((id) => policyPart(id, allowed?.(id))),
    output(`${queue}Url`, variable, ref(queue)),
    output(`${queue}Arn`, `The ARN of ${variable}`, arnRef(queue)),
  ];
}

/** Denies access without TLS. Roles grant access in this account; other accounts do not have access. */
function policyPart(id: string, allowed: Value | undefined) {
  return resource(`${id}Policy`, "AWS::SQS::QueuePolicy", {
    Queues: [ref(id)],
    PolicyDocument: policyDocument(...(allowed ? [allowed] : []), {
      Effect: "Deny",
      Principal: "*",
      Action: "sqs:*",
      Resource: arnRef(id),
      Condition: { Bool: { "aws:SecureTransport": "false" } },
    }),
  });
}

function fromRules(...rules: readonly string[]) {
  const sources: Value = rules.length > 1 ? rules.map(arnRef) : arnRef(String(rules[0]));
  return (id: string): Value => ({
    Effect: "Allow",
    Principal: { Service: "events.amazonaws.com" },
    Action: "sqs:SendMessage",
    Resource: arnRef(id),
    Condition: { ArnEquals: { "aws:SourceArn": sources } },
  });
}

/** ARN in this account and region. `resource` may contain placeholders of `Fn::Sub`. */
export function arnOf(service: string, resource: string) {
  return substituted(
    `arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${resource}`,
  );
}

export type DataPlace = ReturnType<typeof dataElsewhere>;

export const ownData: DataPlace = {
  tableName: ({ name }) => ref(tableId(name)),
  tableArn: ({ name }) => arnRef(tableId(name)),
  indexArn: ({ name }, index) => substituted(`\${${tableId(name)}.Arn}/index/${index}`),
  streamArn: attributeOf(tableId(outboxTable.name), "StreamArn"),
  busName: ref(messageIds.bus),
  busArn: arnRef(messageIds.bus),
  queueUrl: ({ kind }) => ref(messageIds[kind].queue),
  queueArn: ({ kind }) => arnRef(messageIds[kind].queue),
  deadQueueName: ({ kind }) => attributeOf(messageIds[kind].dead, "QueueName"),
  deadQueueArn: ({ kind }) => arnRef(messageIds[kind].dead),
  part: {},
};

export function dataElsewhere({ tables, bus }: Needs) {
  const physical = new Map(tables.map(({ name, tableName }) => [name, tableName]));
  const tableArn = ({ name }: Named, more = "") =>
    arnOf("dynamodb", `table/${physical.get(name)}${more}`);
  const busName = bus?.name ?? "";
  return {
    tableName: ({ tableName }: NeededTable) => substituted(tableName),
    tableArn: (table: Named) => tableArn(table),
    indexArn: (table: Named, index: string) => tableArn(table, `/index/${index}`),
    streamArn: ref("OutboxTableStreamArn"),
    busName: substituted(busName),
    busArn: arnOf("events", `event-bus/${busName}`),
    queueUrl: ({ name }: NeededQueue) =>
      substituted(`https://sqs.\${AWS::Region}.\${AWS::URLSuffix}/\${AWS::AccountId}/${name}`),
    queueArn: ({ name }: NeededQueue) => arnOf("sqs", name),
    deadQueueName: ({ deadName }: NeededQueue) => substituted(deadName),
    deadQueueArn: ({ deadName }: NeededQueue) => arnOf("sqs", deadName),
    part: bus === undefined ? {} : streamParameter,
  };
}

type Named = Pick<NeededTable, "name">;

/** The ARN of a stream cannot be derived from a name, so it is a parameter. */
const streamParameter: TemplatePart = {
  Parameters: {
    OutboxTableStreamArn: {
      Type: "String",
      Description: "The output of this name of the stack that has the tables",
      AllowedPattern: "arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/.+/stream/.+",
      ConstraintDescription: "the ARN of a table's stream",
    },
  },
};
