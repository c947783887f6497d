/**
 * Parts of the DynamoDB SDK that keelson uses, always loaded by `import("./dynamodb-sdk.ts")`. A
 * bundler keeps only these exports; with `import()` of the SDK itself, it would keep all of it.
 */
export {
  BatchGetItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand as ItemQueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
export {
  DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
export { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
