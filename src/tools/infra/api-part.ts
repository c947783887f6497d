import { arnOf } from "./data-place.ts";
import { functionIds, logGroupPart, permissionPart } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { namePrefix } from "./parameters.ts";
import {
  attributeOf,
  logicalId,
  output,
  ref,
  resource,
  substituted,
  type TemplatePart,
  when,
} from "./template.ts";

export const apiId = "HttpApi";
const logGroup = `${apiId}LogGroup`;

/** The API has no authorizer, because the server verifies tokens. */
export function apiParts(functions: readonly NeededFunction[], basePath: string): TemplatePart[] {
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
        DestinationArn: attributeOf(logGroup, "Arn"),
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

function routeParts({ name, routes }: NeededFunction): TemplatePart[] {
  const { id, lambda } = functionIds(name);
  const integration = `${apiId}Integration${id}`;
  return [
    permissionPart(name, apiId, "apigateway", arnOf("execute-api", `\${${apiId}}/*`)),
    resource(integration, "AWS::ApiGatewayV2::Integration", {
      ApiId: ref(apiId),
      IntegrationType: "AWS_PROXY",
      IntegrationUri: attributeOf(lambda, "Arn"),
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

/** Returns the logical ID that osls uses: `HttpApiRouteGetFilesIdVar` for `GET /files/{id}`. */
function routeId(route: string): string {
  if (route === "$default") return `${apiId}RouteDefault`;
  const parts = route.split("/").map((part) =>
    part
      .toLowerCase()
      .replaceAll("-", "Dash")
      .replaceAll(/\{(.*)\}/g, "$1Var")
      .replaceAll(/[^0-9A-Za-z]/g, ""),
  );
  return `${apiId}Route${parts.map((part) => logicalId(part)).join("")}`;
}

/**
 * Omits query, body and other headers, which contain tokens and values. Fields that a client
 * controls come first, because the later of two duplicate members wins.
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
