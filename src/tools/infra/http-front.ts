import { arnOf } from "./data-parts.ts";
import type { Front } from "./front.ts";
import { eventFunction, functionIds, logGroupPart, permissionPart } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { apiParameters, concurrencyParameters, namePrefix } from "./parameters.ts";
import { arnRef, logicalId, output, ref, resource, substituted, when } from "./template.ts";

const apiId = "HttpApi";
const logGroup = `${apiId}LogGroup`;
/**
 * AWS adds each log group of an HTTP API to one resource policy of the account, of 5,120 characters,
 * and never removes it. Names below this one share an entry.
 */
const logFolder = "/aws/vendedlogs/http-api/";

/** An HTTP API. It has no authorizer, because the server verifies tokens. */
export const httpFront: Front = {
  isWeb: false,
  parameters: [concurrencyParameters, apiParameters],
  requestKind: eventFunction(),
  eventKind: eventFunction(),
  parts: apiParts,
  errors: {
    says: "Requests fail with a 5xx status.",
    page: "server-errors",
    metric: ["AWS/ApiGateway", "5xx"],
    of: { ApiId: ref(apiId) },
  },
};

function apiParts(functions: readonly NeededFunction[], basePath: string) {
  return [
    resource(apiId, "AWS::ApiGatewayV2::Api", {
      Name: substituted(namePrefix),
      ProtocolType: "HTTP",
    }),
    logGroupPart(logGroup, `${logFolder}${namePrefix}`, { Condition: "HasAccessLog" }),
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
 * Without query, body and other headers, which contain tokens and values. Members that a client
 * controls come first: the later of two duplicate members wins.
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
