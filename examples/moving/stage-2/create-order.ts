import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import middy from "@middy/core";
import httpJsonBodyParser from "@middy/http-json-body-parser";
import type { APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { access, ValidationError } from "keelson";
import { type AdoptedContext, requestScope, writeOnce } from "keelson/middy";
import { db, type Order, type OrderEvent, ordersTable } from "../before/shared.ts";
import { orders, server } from "./server.ts";

async function createOrder(
  event: OrderEvent,
  { keelson: ctx }: AdoptedContext,
): Promise<APIGatewayProxyStructuredResultV2> {
  const { item, quantity } = event.body;
  const maxQuantity = await ctx.config(orders.config.maxQuantity);
  if (typeof item !== "string" || item === "")
    throw new ValidationError([{ field: "item", error: "is missing" }]);
  if (typeof quantity !== "number" || !(quantity >= 1 && quantity <= maxQuantity))
    throw new ValidationError([
      { field: "quantity", error: `is not a number from 1 to ${maxQuantity}` },
    ]);
  const order: Order = { id: randomUUID(), item, quantity };
  const Item = { pk: `TENANT#${ctx.user.tenantId}`, sk: `ORDER#${order.id}`, ...order };
  await db.send(new PutCommand({ TableName: ordersTable, Item }));
  ctx.log.info("order.created", { orderId: order.id, maxQuantity });
  const headers = { "content-type": "application/json" };
  return { statusCode: 201, headers, body: JSON.stringify(order) };
}

const scope = { handler: "orders.order.create", access: access.authenticated };
export const handler = middy<
  OrderEvent,
  APIGatewayProxyStructuredResultV2,
  Error,
  Context & AdoptedContext
>({ executionMode: requestScope(server, scope) })
  .use(httpJsonBodyParser())
  .use(writeOnce({ once: { required: true, keepSeconds: 3_600 } })) // as long as Powertools
  .handler(createOrder);
