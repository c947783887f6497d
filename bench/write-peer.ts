// Bundled by `cold.ts`: the same write as a team assembles it.
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { search } from "@aws-lambda-powertools/jmespath";
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyStructuredResultV2,
  Context,
} from "aws-lambda";
import * as z from "zod/mini";

const logger = new Logger({
  serviceName: "files",
  correlationIdSearchFn: search as (text: string, data: unknown) => unknown,
});
const input = z.object({ id: z.string(), name: z.string() });

const rename = async (
  event: APIGatewayProxyEventV2,
  _context: Context,
): Promise<APIGatewayProxyStructuredResultV2> => {
  const { id, name } = input.parse({ ...event.pathParameters, ...JSON.parse(event.body ?? "") });
  return { statusCode: 200, body: JSON.stringify({ id, name }) };
};

/** The Lambda function. */
export const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
  .use(
    injectLambdaContext(logger, { correlationIdPath: 'headers."x-request-id"', resetKeys: true }),
  )
  .use(httpErrorHandler())
  .handler(
    makeIdempotent(rename, {
      persistenceStore: new DynamoDBPersistenceLayer({ tableName: "keelson-claims" }),
      config: new IdempotencyConfig({ eventKeyJmesPath: 'headers."idempotency-key"' }),
    }),
  );
