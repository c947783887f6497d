import {
  attributeDefinitions,
  indexDescription,
  keySchema,
} from "../../aws/tables/table-indexes.ts";
import type { NeededTable } from "./needs.ts";
import { withCustomerKey } from "./parameters.ts";
import { attributeOf, logicalId, ref, substituted, type TemplatePart } from "./template.ts";

/** A permanent table is recoverable, protected against deletion, and outlives the stack. */
export function tablePart(table: NeededTable): TemplatePart {
  const { name, tableName, variable, timeToLive, isLasting, stream, indexes } = table;
  const id = tableId(name);
  return {
    Resources: {
      [id]: {
        Type: "AWS::DynamoDB::Table",
        ...(isLasting ? { DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" } : {}),
        Properties: {
          TableName: substituted(tableName),
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: attributeDefinitions(table, ...indexes),
          KeySchema: keySchema(table),
          ...(indexes.length === 0
            ? {}
            : { GlobalSecondaryIndexes: indexes.map(indexDescription) }),
          ...(timeToLive === undefined
            ? {}
            : { TimeToLiveSpecification: { AttributeName: timeToLive, Enabled: true } }),
          ...(stream === undefined ? {} : { StreamSpecification: { StreamViewType: stream } }),
          ...(isLasting
            ? {
                DeletionProtectionEnabled: ref("DeletionProtection"),
                PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
              }
            : {}),
          SSESpecification: withCustomerKey({
            SSEEnabled: true,
            SSEType: "KMS",
            KMSMasterKeyId: ref("CustomerKeyArn"),
          }),
        },
      },
    },
    Outputs: {
      [`${id}Name`]: { Description: variable, Value: ref(id) },
      ...(stream === undefined
        ? {}
        : {
            [`${id}StreamArn`]: {
              Description: `The stream of ${variable}`,
              Value: attributeOf(id, "StreamArn"),
            },
          }),
    },
  };
}

export function tableId(name: string): string {
  return logicalId(name, "Table");
}
