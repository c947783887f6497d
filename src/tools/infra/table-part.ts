import {
  attributeDefinitions,
  indexDescription,
  keySchema,
} from "../../aws/tables/table-indexes.ts";
import type { NeededTable } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import {
  attributeOf,
  logicalId,
  output,
  ref,
  resource,
  substituted,
  type TemplatePart,
} from "./template.ts";

/** A permanent table is recoverable, protected against deletion, and outlives the stack. */
export function tableParts(table: NeededTable): TemplatePart[] {
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

export const tableType = "AWS::DynamoDB::Table";

export function tableId(name: string): string {
  return logicalId(name, "Table");
}
