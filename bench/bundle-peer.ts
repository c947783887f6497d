// Bundled by `bundles.ts`: what a team assembles, all of it imported where it is used.
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { search } from "@aws-lambda-powertools/jmespath";
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import * as z from "zod/mini";

const logger = new Logger({
  serviceName: "files",
  correlationIdSearchFn: search as (text: string, data: unknown) => unknown,
});
const client = new DynamoDBClient({});
const documents = DynamoDBDocumentClient.from(client);
const persistenceStore = new DynamoDBPersistenceLayer({
  tableName: "keelson-once",
  awsSdkV3Client: client,
});

const input = z.object({ id: z.string() });

/** Writes use it; it is what has to be imported that is measured here. */
export const once = makeIdempotent(async (event: { readonly id: string }) => event.id, {
  persistenceStore,
  config: new IdempotencyConfig({ eventKeyJmesPath: "id" }),
});

/** The Lambda function. */
export const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
  .use(
    injectLambdaContext(logger, { correlationIdPath: 'headers."x-request-id"', resetKeys: true }),
  )
  .use(httpErrorHandler())
  .handler(async (event: APIGatewayProxyEventV2) => {
    const { id } = input.parse(event.pathParameters);
    const { Item } = await documents.send(
      new GetCommand({ TableName: "keelson-parameters", Key: { id: "max-upload-size-mb" } }),
    );
    return { statusCode: 200, body: JSON.stringify({ id, maxMb: Item?.["value"] }) };
  });
