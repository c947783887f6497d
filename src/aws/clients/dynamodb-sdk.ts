/**
 * Parts of the DynamoDB SDK that keelson uses at run time. Always loaded by
 * `import("./dynamodb-sdk.ts")`, never with the package. A bundler keeps only these exports and
 * their dependencies. If the SDK itself were loaded by `import()`, the bundler would have to keep
 * all of it.
 */
export {
  BatchGetItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
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
