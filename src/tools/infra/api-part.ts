import { arnOf } from "./data-place.ts";
import { functionIds } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { namePrefix } from "./parameters.ts";
import { attributeOf, ref, substituted, type TemplatePart, when } from "./template.ts";

export const apiId = "HttpApi";
const logGroup = `${apiId}LogGroup`;

/** Has no authorizer, because the server verifies tokens. */
export function apiParts(functions: readonly NeededFunction[], basePath: string): TemplatePart[] {
  return [
    apiPart(basePath),
    ...functions.filter(({ calledBy }) => calledBy === "requests").map(routePart),
  ];
}

function apiPart(basePath: string): TemplatePart {
  return {
    Resources: {
      [apiId]: {
        Type: "AWS::ApiGatewayV2::Api",
        Properties: { Name: substituted(namePrefix), ProtocolType: "HTTP" },
      },
      [logGroup]: {
        Type: "AWS::Logs::LogGroup",
        Condition: "HasAccessLog",
        Properties: {
          LogGroupName: substituted(`/aws/http-api/${namePrefix}`),
          RetentionInDays: ref("LogRetentionDays"),
        },
      },
      [`${apiId}Stage`]: {
        Type: "AWS::ApiGatewayV2::Stage",
        Properties: {
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
        },
      },
    },
    Outputs: {
      [`${apiId}Id`]: { Description: "The ID of the HTTP API", Value: ref(apiId) },
      [`${apiId}Url`]: {
        Description: "Where the HTTP API answers",
        Value: substituted(
          `https://\${HttpApi}.execute-api.\${AWS::Region}.\${AWS::URLSuffix}${basePath}`,
        ),
      },
    },
  };
}

function routePart({ name, routes }: NeededFunction): TemplatePart {
  const { id, lambda } = functionIds(name);
  const integration = `${apiId}Integration${id}`;
  return {
    Resources: {
      [`${id}LambdaPermissionHttpApi`]: {
        Type: "AWS::Lambda::Permission",
        Properties: {
          FunctionName: attributeOf(lambda, "Arn"),
          Action: "lambda:InvokeFunction",
          Principal: "apigateway.amazonaws.com",
          SourceArn: arnOf("execute-api", `\${${apiId}}/*`),
        },
      },
      [integration]: {
        Type: "AWS::ApiGatewayV2::Integration",
        Properties: {
          ApiId: ref(apiId),
          IntegrationType: "AWS_PROXY",
          IntegrationUri: attributeOf(lambda, "Arn"),
          PayloadFormatVersion: "2.0",
          TimeoutInMillis: 30_000,
        },
      },
      ...Object.fromEntries(
        routes.map((route) => [
          routeId(route),
          {
            Type: "AWS::ApiGatewayV2::Route",
            Properties: {
              ApiId: ref(apiId),
              RouteKey: route,
              Target: substituted(`integrations/\${${integration}}`),
            },
          },
        ]),
      ),
    },
  };
}

/** The ID that osls uses: `HttpApiRouteGetFilesIdVar` for `GET /files/{id}`. */
function routeId(route: string): string {
  if (route === "$default") return `${apiId}RouteDefault`;
  const parts = route.split("/").map((part) => {
    const text = part
      .toLowerCase()
      .replaceAll("-", "Dash")
      .replaceAll(/\{(.*)\}/g, "$1Var")
      .replaceAll(/[^0-9A-Za-z]/g, "");
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
  });
  return `${apiId}Route${parts.join("")}`;
}

/**
 * Logged for each request, even one that reaches no function. Omits query, body and other headers:
 * they contain tokens and values. Fields that a client controls come first: the later of two
 * duplicate members wins.
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
