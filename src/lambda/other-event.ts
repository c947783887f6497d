import { asksAuthorizer, isOfSocket } from "./codec.ts";

/** Names the kind of an event that is not HTTP, to help find its trigger. Never throws. */
export function kindOf(event: unknown): string {
  if (!isObject(event)) return event === null ? "null" : `of type ${typeof event}`;
  const { requestContext, Records: records } = event;
  if (asksAuthorizer(event)) return "one that API Gateway asks a Lambda authorizer with";
  if ("authorizationToken" in event) return "one that AppSync asks a Lambda authorizer with";
  if (isOfSocket(requestContext)) return "of a WebSocket API";
  if ("raw_path" in event || (isObject(requestContext) && "serviceNetworkArn" in requestContext)) return "of VPC Lattice";
  if (isObject(event["info"]) && ("fieldName" in event["info"] || "channel" in event["info"])) return "of AppSync";
  if ("detail-type" in event) return "of EventBridge";
  const record: unknown = Array.isArray(records) ? records[0] : undefined;
  if (!isObject(record)) return "of an unknown kind";
  if ("cf" in record) return "of CloudFront (Lambda@Edge)";
  const source = record["eventSource"] ?? record["EventSource"];
  return typeof source === "string" && /^aws:[a-z0-9]{1,30}$/.test(source) ? `records of ${source}` : "of an unknown kind";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
