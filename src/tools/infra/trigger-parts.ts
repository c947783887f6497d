import { outboxTable } from "../../app/handlers/table.ts";
import { arnOf, type DataPlace, messageIds, tableId } from "./data-parts.ts";
import { functionIds, logGroupPart, permissionPart } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { type Needs, queuesOf } from "./needs.ts";
import { namePrefix, queueParameters } from "./parameters.ts";
import {
  arnRef,
  logicalId,
  type Members,
  output,
  ref,
  resource,
  substituted,
  type Value,
  when,
} from "./template.ts";

export function triggerParts(functions: readonly NeededFunction[], needs: Needs, place: DataPlace) {
  return functions.flatMap(({ name, calledBy }) => {
    if (calledBy === "stream")
      return mapping(name, `Dynamodb${tableId(outboxTable.name)}`, place.streamArn, ofStream);
    if (calledBy === "minute") return minuteParts(name);
    if (calledBy === "requests") return [];
    return [
      queueParameters,
      ...queuesOf(needs).map((queue) =>
        mapping(name, `SQS${messageIds[queue.kind].queue}`, place.queueArn(queue), ofQueue),
      ),
    ];
  });
}

const FunctionResponseTypes = ["ReportBatchItemFailures"];
const ofQueue = {
  BatchSize: 10,
  FunctionResponseTypes,
  ScalingConfig: { MaximumConcurrency: ref("QueueConcurrency") },
};
const ofStream = {
  StartingPosition: "TRIM_HORIZON",
  BatchSize: 100,
  // Within this window, the publishing function has usually dispatched the event.
  MaximumBatchingWindowInSeconds: 5,
  MaximumRetryAttempts: 3, // after that, the sweep dispatches the event
  BisectBatchOnFunctionError: true,
  FunctionResponseTypes,
  FilterCriteria: { Filters: [{ Pattern: JSON.stringify({ eventName: ["INSERT"] }) }] },
};

function mapping(name: string, source: string, arn: Value, properties: Members) {
  const { id, lambda } = functionIds(name);
  return resource(`${id}EventSourceMapping${source}`, "AWS::Lambda::EventSourceMapping", {
    EventSourceArn: arn,
    FunctionName: arnRef(lambda),
    ...properties,
  });
}

function minuteParts(name: string) {
  const { id, lambda } = functionIds(name);
  const rule = "EventsRuleSchedule1";
  return [
    resource(`${id}${rule}`, "AWS::Events::Rule", {
      ScheduleExpression: "rate(1 minute)",
      State: "ENABLED",
      Targets: [{ Id: `${name}Schedule`, Arn: arnRef(lambda) }],
    }),
    permissionPart(name, rule, "events", arnRef(`${id}${rule}`)),
  ];
}

export const apiId = "HttpApi";
const logGroup = `${apiId}LogGroup`;

/** The API has no authorizer, because the server verifies tokens. */
export function apiParts(functions: readonly NeededFunction[], basePath: string) {
  return [
    resource(apiId, "AWS::ApiGatewayV2::Api", {
      Name: substituted(namePrefix),
      ProtocolType: "HTTP",
    }),
    logGroupPart(logGroup, `/aws/http-api/${namePrefix}`, { Condition: "HasAccessLog" }),
    resource(`${apiId}Stage`, "AWS::ApiGatewayV2::Stage", {
      ApiId: ref(apiId),
      StageName: "$default",
      AutoDeploy: true,
      DefaultRouteSettings: {
        DetailedMetricsEnabled: false,
        ThrottlingRateLimit: ref("ThrottleRate"),
        ThrottlingBurstLimit: ref("ThrottleBurst"),
      },
      AccessLogSettings: when("HasAccessLog", {
        DestinationArn: arnRef(logGroup),
        Format: JSON.stringify(accessLine),
      }),
    }),
    output(`${apiId}Id`, "The ID of the HTTP API", ref(apiId)),
    output(
      `${apiId}Url`,
      "Where the HTTP API answers",
      substituted(`https://\${HttpApi}.execute-api.\${AWS::Region}.\${AWS::URLSuffix}${basePath}`),
    ),
    ...functions.filter(({ calledBy }) => calledBy === "requests").flatMap(routeParts),
  ];
}

function routeParts({ name, routes }: NeededFunction) {
  const { id, lambda } = functionIds(name);
  const integration = `${apiId}Integration${id}`;
  return [
    permissionPart(name, apiId, "apigateway", arnOf("execute-api", `\${${apiId}}/*`)),
    resource(integration, "AWS::ApiGatewayV2::Integration", {
      ApiId: ref(apiId),
      IntegrationType: "AWS_PROXY",
      IntegrationUri: arnRef(lambda),
      PayloadFormatVersion: "2.0",
      TimeoutInMillis: 30_000,
    }),
    ...routes.map((route) =>
      resource(routeId(route), "AWS::ApiGatewayV2::Route", {
        ApiId: ref(apiId),
        RouteKey: route,
        Target: substituted(`integrations/\${${integration}}`),
      }),
    ),
  ];
}

/** As in osls: `HttpApiRouteGetFilesIdVar` for `GET /files/{id}`. */
function routeId(route: string) {
  if (route === "$default") return `${apiId}RouteDefault`;
  const parts = route
    .toLowerCase()
    .replaceAll("-", "Dash")
    .replaceAll(/\{([^/]*)\}/g, "$1Var")
    .split("/");
  return `${apiId}Route${parts.map((part) => logicalId(part.replaceAll(/[^0-9A-Za-z]/g, ""))).join("")}`;
}

/**
 * Without query, body and other headers, which contain tokens and values. What a client controls
 * comes first: the later of two duplicate members wins.
 */
const accessLine = {
  userAgent: "$context.identity.userAgent",
  path: "$context.path",
  method: "$context.httpMethod",
  protocol: "$context.protocol",
  requestId: "$context.requestId",
  requestTime: "$context.requestTime",
  routeKey: "$context.routeKey",
  status: "$context.status",
  sourceIp: "$context.identity.sourceIp",
  responseLength: "$context.responseLength",
  latencyMs: "$context.responseLatency",
  integrationLatencyMs: "$context.integrationLatency",
  integrationRequestId: "$context.integration.requestId",
  integrationStatus: "$context.integrationStatus",
  integrationError: "$context.integrationErrorMessage",
  error: "$context.error.message",
};
