/**
 * What is used of the DynamoDB SDK at run time; loaded by `import("./dynamodb-sdk.ts")`, never with the package. A bundler
 * keeps these and what they need: of a package that is itself loaded by `import()` it has to keep everything.
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
