import { createHash } from "node:crypto";
import { arnOf } from "./data-parts.ts";
import type { Front } from "./front.ts";
import { eventFunction, functionIds, logGroupPart, permissionPart } from "./function-part.ts";
import type { NeededFunction } from "./functions.ts";
import { apiParameters, choice, concurrencyParameters, namePrefix } from "./parameters.ts";
import { type RestPath, restPaths } from "./rest-paths.ts";
import { longestStreamMs, requestFunctions } from "./streaming.ts";
import {
  arnRef,
  attributeOf,
  output,
  ref,
  resource,
  substituted,
  type TemplatePart,
  type Values,
  when,
} from "./template.ts";

const apiId = "RestApi";
const logGroup = `${apiId}LogGroup`;
const stage = "live";

/** Off, because a stage with a log fails where the account has no role for it. */
const accessLogParameter: TemplatePart = {
  Parameters: {
    AccessLog: choice(
      "Whether the API logs a line for each request; the account needs a CloudWatch role for API Gateway",
      "false",
      "true",
    ),
  },
};

/** A REST API. It has no authorizer, because the server verifies tokens. */
export function restFront(isStreaming: boolean): Front {
  const { kind, parameters } = requestFunctions(isStreaming);
  return {
    isWeb: false,
    parameters: [concurrencyParameters, apiParameters, accessLogParameter, ...parameters],
    requestKind: kind,
    eventKind: eventFunction(),
    parts: (functions, basePath) => apiParts(functions, basePath, isStreaming),
    errors: {
      says: "Requests fail with a 5xx status.",
      page: "server-errors",
      metric: ["AWS/ApiGateway", "5XXError"],
      of: { ApiName: substituted(namePrefix) },
    },
  };
}

function apiParts(functions: readonly NeededFunction[], basePath: string, isStreaming: boolean) {
  const answering = functions.filter(({ calledBy }) => calledBy === "requests");
  const paths = restPaths(answering);
  const methods = Object.assign(
    {},
    ...paths.flatMap((path) => methodParts(path, isStreaming)).map(({ Resources }) => Resources),
  );
  return [
    resource(apiId, "AWS::ApiGateway::RestApi", {
      Name: substituted(namePrefix),
      EndpointConfiguration: { Types: ["REGIONAL"] },
      BinaryMediaTypes: ["*/*"], // otherwise bodies would be decoded as strings
    }),
    ...paths.flatMap(pathPart),
    { Resources: methods },
    ...stageParts(methods),
    output(`${apiId}Id`, "The ID of the REST API", ref(apiId)),
    output(
      `${apiId}Url`,
      "Where the REST API answers",
      substituted(
        `https://\${${apiId}}.execute-api.\${AWS::Region}.\${AWS::URLSuffix}/${stage}${basePath}`,
      ),
    ),
    ...answering.map(({ name }) =>
      permissionPart(name, apiId, "apigateway", arnOf("execute-api", `\${${apiId}}/*`)),
    ),
  ];
}

const idOf = (path: string) => `${apiId}Resource${path}`;

function pathPart({ id, parent, part }: RestPath) {
  if (part === undefined) return [];
  return [
    resource(idOf(id), "AWS::ApiGateway::Resource", {
      RestApiId: ref(apiId),
      ParentId: parent === undefined ? attributeOf(apiId, "RootResourceId") : ref(idOf(parent)),
      PathPart: part,
    }),
  ];
}

function methodParts({ id, part, methods }: RestPath, isStreaming: boolean) {
  const ResourceId = part === undefined ? attributeOf(apiId, "RootResourceId") : ref(idOf(id));
  return Object.entries(methods).map(([HttpMethod, name]) =>
    resource(`${apiId}Method${id}${HttpMethod}`, "AWS::ApiGateway::Method", {
      RestApiId: ref(apiId),
      ResourceId,
      HttpMethod,
      AuthorizationType: "NONE",
      Integration: {
        Type: "AWS_PROXY",
        IntegrationHttpMethod: "POST",
        ...integration(functionIds(name).lambda, isStreaming),
      },
    }),
  );
}

function integration(lambda: string, isStreaming: boolean): Values {
  const path = isStreaming
    ? ["2021-11-15", "response-streaming-invocations"]
    : ["2015-03-31", "invocations"];
  const [version, action] = path;
  const Uri = substituted(
    `arn:\${AWS::Partition}:apigateway:\${AWS::Region}:lambda:path/${version}/functions/\${${lambda}.Arn}/${action}`,
  );
  // Without streaming, the API's own limit of 29 s.
  return isStreaming
    ? { Uri, ResponseTransferMode: "STREAM", TimeoutInMillis: longestStreamMs }
    : { Uri };
}

/** A deployment keeps the methods of its time, so another set of methods needs another deployment. */
function stageParts(methods: Values) {
  const hash = createHash("sha256").update(JSON.stringify(methods)).digest("hex").slice(0, 8);
  const deployment = `${apiId}Deployment${hash}`;
  return [
    resource(
      deployment,
      "AWS::ApiGateway::Deployment",
      { RestApiId: ref(apiId) },
      { DependsOn: Object.keys(methods) },
    ),
    logGroupPart(logGroup, `/aws/rest-api/${namePrefix}`, { Condition: "HasAccessLog" }),
    resource(`${apiId}Stage`, "AWS::ApiGateway::Stage", {
      RestApiId: ref(apiId),
      StageName: stage,
      DeploymentId: ref(deployment),
      MethodSettings: [
        {
          HttpMethod: "*",
          ResourcePath: "/*",
          MetricsEnabled: false,
          ThrottlingRateLimit: ref("ThrottleRate"),
          ThrottlingBurstLimit: ref("ThrottleBurst"),
        },
      ],
      AccessLogSetting: when("HasAccessLog", {
        DestinationArn: arnRef(logGroup),
        Format: JSON.stringify(accessLine),
      }),
    }),
  ];
}

/** As of an HTTP API, but a REST API has no route key and other names. */
const accessLine = {
  userAgent: "$context.identity.userAgent",
  path: "$context.path",
  method: "$context.httpMethod",
  protocol: "$context.protocol",
  requestId: "$context.requestId",
  requestTime: "$context.requestTime",
  routeKey: "$context.resourcePath",
  status: "$context.status",
  sourceIp: "$context.identity.sourceIp",
  responseLength: "$context.responseLength",
  latencyMs: "$context.responseLatency",
  integrationLatencyMs: "$context.integration.latency",
  integrationRequestId: "$context.integration.requestId",
  integrationStatus: "$context.integration.status",
  integrationError: "$context.integration.error",
  error: "$context.error.message",
};
