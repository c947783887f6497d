import { asksAuthorizer, isOfSocket } from "./api-gateway.ts";

/** Describes an event that is not HTTP, to help find its trigger. Never throws. */
export function kindOf(event: unknown): string {
  if (!isObject(event)) return event === null ? "null" : `of type ${typeof event}`;
  const asked = requestKind(event);
  if (asked !== undefined) return asked;
  if ("detail-type" in event) return "of EventBridge";
  const record = firstRecord(event);
  const source = record["eventSource"] ?? record["EventSource"];
  return typeof source === "string" && /^aws:[a-z0-9]{1,30}$/.test(source)
    ? `records of ${source}`
    : "of an unknown kind";
}

/** Whether an event that is not HTTP carries a request that any client may have sent. */
export function isRequest(event: unknown): boolean {
  // AppSync passes a batch of requests as a list.
  const first: unknown = Array.isArray(event) ? event[0] : event;
  return isObject(first) && requestKind(first) !== undefined;
}

function requestKind(event: Record<string, unknown>): string | undefined {
  const { requestContext, info } = event;
  if (asksAuthorizer(event)) return "one that API Gateway asks a Lambda authorizer with";
  if ("authorizationToken" in event) return "one that AppSync asks a Lambda authorizer with";
  if (isOfSocket(requestContext)) return "of a WebSocket API";
  if ("raw_path" in event || (isObject(requestContext) && "serviceNetworkArn" in requestContext))
    return "of VPC Lattice";
  if (isObject(info) && ("fieldName" in info || "channel" in info)) return "of AppSync";
  const record = firstRecord(event);
  return "cf" in record ? "of CloudFront (Lambda@Edge)" : undefined;
}

function firstRecord({ Records: records }: Record<string, unknown>): Record<string, unknown> {
  return Object(Array.isArray(records) ? records[0] : undefined);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
