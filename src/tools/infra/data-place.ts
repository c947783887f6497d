import { outboxTable } from "../../app/handlers/table.ts";
import { messageIds } from "./message-parts.ts";
import type { NeededQueue, NeededTable, Needs } from "./needs.ts";
import { tableId } from "./table-part.ts";
import { attributeOf, ref, substituted, type TemplatePart, type Value } from "./template.ts";

/** References to tables, bus and queues in this stack or another one. */
export interface DataPlace {
  readonly tableName: (table: NeededTable) => Value;
  readonly tableArn: (table: Pick<NeededTable, "name">) => Value;
  readonly indexArn: (table: Pick<NeededTable, "name">, index: string) => Value;
  readonly streamArn: Value;
  readonly busName: Value;
  readonly busArn: Value;
  readonly queueUrl: (queue: NeededQueue) => Value;
  readonly queueArn: (queue: NeededQueue) => Value;
  readonly deadQueueName: (queue: NeededQueue) => Value;
  readonly deadQueueArn: (queue: NeededQueue) => Value;
  readonly part: TemplatePart;
}

/** Placeholders from which `Fn::Sub` builds the ARNs of this account and region. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
const [partition, ofAccount] = ["arn:${AWS::Partition}", "${AWS::Region}:${AWS::AccountId}"];

/** ARN in this account and region. `resource` may contain placeholders of `Fn::Sub`. */
export function arnOf(service: string, resource: string): Value {
  return substituted(`${partition}:${service}:${ofAccount}:${resource}`);
}

export const ownData: DataPlace = {
  tableName: ({ name }) => ref(tableId(name)),
  tableArn: ({ name }) => attributeOf(tableId(name), "Arn"),
  indexArn: ({ name }, index) => substituted(`\${${tableId(name)}.Arn}/index/${index}`),
  streamArn: attributeOf(tableId(outboxTable.name), "StreamArn"),
  busName: ref(messageIds.bus),
  busArn: attributeOf(messageIds.bus, "Arn"),
  queueUrl: ({ kind }) => ref(messageIds[kind].queue),
  queueArn: ({ kind }) => attributeOf(messageIds[kind].queue, "Arn"),
  deadQueueName: ({ kind }) => attributeOf(messageIds[kind].dead, "QueueName"),
  deadQueueArn: ({ kind }) => attributeOf(messageIds[kind].dead, "Arn"),
  part: {},
};

export function dataElsewhere({ tables, bus }: Needs): DataPlace {
  const physical = new Map(tables.map(({ name, tableName }) => [name, tableName]));
  const table = (name: string) => `table/${physical.get(name)}`;
  const busName = bus?.name ?? "";
  return {
    tableName: ({ tableName }) => substituted(tableName),
    tableArn: ({ name }) => arnOf("dynamodb", table(name)),
    indexArn: ({ name }, index) => arnOf("dynamodb", `${table(name)}/index/${index}`),
    streamArn: ref("OutboxTableStreamArn"),
    busName: substituted(busName),
    busArn: arnOf("events", `event-bus/${busName}`),
    queueUrl: ({ name }) =>
      substituted(`https://sqs.\${AWS::Region}.\${AWS::URLSuffix}/\${AWS::AccountId}/${name}`),
    queueArn: ({ name }) => arnOf("sqs", name),
    deadQueueName: ({ deadName }) => substituted(deadName),
    deadQueueArn: ({ deadName }) => arnOf("sqs", deadName),
    part: bus === undefined ? {} : streamParameter,
  };
}

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
