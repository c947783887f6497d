// biome-ignore lint/style/noRestrictedImports: a type only; `ctx.db` is a document client
import type { DynamoDBDocumentClient, TransactWriteCommandInput } from "@aws-sdk/lib-dynamodb";

/** Type of `ctx.db`: a DynamoDB document client whose calls abort with `ctx.signal`. */
export type Database = DynamoDBDocumentClient;

/** An action of `ctx.commit`: one of `Put`, `Update`, `Delete` and `ConditionCheck`. */
export type CommitItem = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];
