import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import type {
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyStructuredResultV2,
} from "aws-lambda";
import { db, logger, ordersTable, tenantOf } from "./shared.ts";

async function listOrders(
  event: APIGatewayProxyEventV2WithJWTAuthorizer,
): Promise<APIGatewayProxyStructuredResultV2> {
  const { Items = [] } = await db.send(
    new QueryCommand({
      TableName: ordersTable,
      KeyConditionExpression: "pk = :tenant",
      ExpressionAttributeValues: { ":tenant": `TENANT#${tenantOf(event)}` },
    }),
  );
  const items = Items.map(({ id, item, quantity }) => ({ id, item, quantity }));
  const headers = { "content-type": "application/json" };
  return { statusCode: 200, headers, body: JSON.stringify({ items }) };
}

export const handler = middy<
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyStructuredResultV2
>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(httpErrorHandler())
  .handler(listOrders);
