import { randomUUID } from "node:crypto";
import { IdempotencyConfig } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import { makeHandlerIdempotent } from "@aws-lambda-powertools/idempotency/middleware";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import type { APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import {
  db,
  httpError,
  idempotencyTable,
  logger,
  type Order,
  type OrderEvent,
  ordersTable,
  tenantOf,
} from "./shared.ts";

const maxQuantity = 50; // why 50, nobody knows

async function createOrder(event: OrderEvent): Promise<APIGatewayProxyStructuredResultV2> {
  const tenantId = tenantOf(event);
  const { item, quantity } = event.body;
  if (typeof item !== "string" || item === "") throw httpError(422, "item is missing");
  if (typeof quantity !== "number" || !(quantity >= 1 && quantity <= maxQuantity))
    throw httpError(422, `quantity is not a number from 1 to ${maxQuantity}`);
  const order: Order = { id: randomUUID(), item, quantity };
  const Item = { pk: `TENANT#${tenantId}`, sk: `ORDER#${order.id}`, ...order };
  await db.send(new PutCommand({ TableName: ordersTable, Item }));
  logger.info("order.created", { orderId: order.id, tenantId });
  const headers = { "content-type": "application/json" };
  return { statusCode: 201, headers, body: JSON.stringify(order) };
}

export const persistenceStore = new DynamoDBPersistenceLayer({ tableName: idempotencyTable });
export const config = new IdempotencyConfig({
  eventKeyJmesPath:
    '[requestContext.authorizer.jwt.claims."custom:tenant_id", headers."idempotency-key"]',
  throwOnNoIdempotencyKey: true,
});

export const handler = middy<OrderEvent, APIGatewayProxyStructuredResultV2>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(httpErrorHandler())
  .use(httpJsonBodyParser())
  .use(makeHandlerIdempotent({ persistenceStore, config }))
  .handler(createOrder);
