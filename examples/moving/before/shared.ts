import { Logger } from "@aws-lambda-powertools/logger";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import type { APIGatewayProxyEventV2WithJWTAuthorizer } from "aws-lambda";

export const logger = new Logger({ serviceName: "orders" });
export const db = DynamoDBDocumentClient.from(new DynamoDBClient({}));
export const ordersTable = process.env["ORDERS_TABLE"] ?? "orders";
export const idempotencyTable = process.env["IDEMPOTENCY_TABLE"] ?? "idempotency";

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly quantity: number;
}

/** The event after Middy's parser of JSON bodies. */
export type OrderEvent = Omit<APIGatewayProxyEventV2WithJWTAuthorizer, "body"> & {
  readonly body: { readonly item?: unknown; readonly quantity?: unknown };
};

/** An error that Middy's error handler sends to the client. */
export function httpError(statusCode: number, message: string): Error {
  return Object.assign(new Error(message), { statusCode, expose: true });
}

/** The tenant in the claims of a Cognito user. The API's authorizer has verified them. */
export function tenantOf({
  requestContext,
}: Pick<APIGatewayProxyEventV2WithJWTAuthorizer, "requestContext">): string {
  const tenantId = requestContext.authorizer?.jwt?.claims?.["custom:tenant_id"];
  if (typeof tenantId !== "string") throw httpError(401, "the token names no tenant");
  return tenantId;
}
