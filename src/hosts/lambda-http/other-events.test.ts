import middy from "@middy/core";
import { expect, test, vi } from "vitest";
import { defineFeature } from "../../app/features/feature.ts";
import { buildServer } from "../../app/server/server.ts";
import { access } from "../../base/identity/access.ts";
import { requestScope } from "../middy/request-scope.ts";
import type { LambdaHttpEvent } from "./http-events.ts";
import { lambdaHttp } from "./http-handler.ts";

const ran = vi.fn(async () => ({}));
const health = defineFeature("pets", (r) => {
  r.query("pet.list", { route: "GET /pets", access: access.everyone, handler: ran });
});
const server = () => buildServer({ features: [health], log: { level: "error" } });
const invoke = (event: unknown) =>
  lambdaHttp<LambdaHttpEvent>(server())(event as LambdaHttpEvent, {} as never);

const arn = "arn:aws:execute-api:eu-west-1:000000000000:a1/dev/GET/pets";
const context = { apiId: "a1", stage: "dev" };
const http = { method: "GET", path: "/pets", sourceIp: "203.0.113.9" };
const authorizer = "one that API Gateway asks a Lambda authorizer with";

/** Ours, after what AWS documents; each with only what tells it from a request. */
const others: [string, string, unknown][] = [
  [
    "a REQUEST authorizer's of a REST API",
    authorizer,
    {
      type: "REQUEST",
      methodArn: arn,
      resource: "/pets",
      path: "/pets",
      httpMethod: "GET",
      headers: {},
      requestContext: context,
    },
  ],
  [
    "a TOKEN authorizer's",
    authorizer,
    { type: "TOKEN", methodArn: arn, authorizationToken: "Bearer x" },
  ],
  [
    "an authorizer's of an HTTP API with payload format 1.0",
    authorizer,
    {
      version: "1.0",
      type: "REQUEST",
      methodArn: arn,
      path: "/pets",
      httpMethod: "GET",
      requestContext: context,
    },
  ],
  [
    "an authorizer's of an HTTP API with payload format 2.0",
    authorizer,
    {
      version: "2.0",
      type: "REQUEST",
      routeArn: arn,
      rawPath: "/pets",
      requestContext: { ...context, http },
    },
  ],
  [
    "an authorizer's of a WebSocket API",
    authorizer,
    {
      type: "REQUEST",
      methodArn: arn,
      headers: {},
      requestContext: { connectionId: "c1=", eventType: "CONNECT" },
    },
  ],
  [
    "an authorizer's of AppSync",
    "one that AppSync asks a Lambda authorizer with",
    { authorizationToken: "x", requestContext: { apiId: "a1", queryString: "query" } },
  ],
  [
    "a WebSocket API's",
    "of a WebSocket API",
    { requestContext: { connectionId: "c1=", eventType: "MESSAGE" }, body: "{}" },
  ],
  [
    "a WebSocket API's with a method",
    "of a WebSocket API",
    {
      httpMethod: "GET",
      path: "/pets",
      requestContext: { connectionId: "c1=", eventType: "CONNECT" },
    },
  ],
  [
    "VPC Lattice's",
    "of VPC Lattice",
    { raw_path: "/pets", method: "GET", headers: {}, is_base64_encoded: false },
  ],
  [
    "VPC Lattice's, version 2.0",
    "of VPC Lattice",
    {
      version: "2.0",
      path: "/pets",
      method: "GET",
      requestContext: { serviceNetworkArn: "arn:aws:vpc-lattice" },
    },
  ],
  [
    "a resolver's of AppSync",
    "of AppSync",
    { arguments: {}, info: { fieldName: "pets", parentTypeName: "Query" } },
  ],
  ["AppSync Events'", "of AppSync", { info: { channel: { path: "/pets" }, operation: "PUBLISH" } }],
  [
    "EventBridge's",
    "of EventBridge",
    { version: "0", "detail-type": "pet.born", source: "pets", detail: {} },
  ],
  [
    "CloudFront's",
    "of CloudFront (Lambda@Edge)",
    { Records: [{ cf: { request: { method: "GET", uri: "/pets" } } }] },
  ],
  ["SQS's", "records of aws:sqs", { Records: [{ eventSource: "aws:sqs", body: "{}" }] }],
  ["SNS's", "records of aws:sns", { Records: [{ EventSource: "aws:sns", Sns: {} }] }],
  ["nobody's", "of an unknown kind", { Records: [{ eventSource: "aws:\nsqs" }] }],
  [
    "nobody's, with nothing in it",
    "of an unknown kind",
    { Records: [], info: {}, requestContext: null },
  ],
  ["a text", "of type string", "GET /pets"],
  ["null", "null", null],
];

test.each(others)(
  "refuses an event that is %s with an error that names its kind",
  async (_name, kind, event) => {
    await expect(invoke(event)).rejects.toThrow(
      `the event is ${kind}, not of a REST API, an HTTP API, a function URL or a load balancer; check the function's trigger`,
    );
    expect(ran).not.toHaveBeenCalled();
  },
);

test("requestScope passes an authorizer's event to its handler, and returns its policy unchanged", async () => {
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  vi.stubEnv("AWS_REGION", "eu-west-1");
  const policy = { principalId: "ann", policyDocument: { Version: "2012-10-17", Statement: [] } };
  const handler = middy({
    executionMode: requestScope(server(), {
      handler: "legacy.token.check",
      access: access.everyone,
    }),
  }).handler(async () => policy);
  const [, , event] = others[0] as (typeof others)[0]; // it is there
  const given = await handler(event, {} as never);
  vi.restoreAllMocks();
  vi.unstubAllEnvs();

  expect(given).toEqual(policy);
});

/** Requests that lack what most have. */
const sparse: [string, object][] = [
  [
    "a test invocation from the console of API Gateway",
    {
      resource: "/pets",
      path: "/pets",
      httpMethod: "GET",
      headers: null,
      multiValueHeaders: null,
      queryStringParameters: null,
      multiValueQueryStringParameters: null,
      requestContext: {
        stage: "test-invoke-stage",
        identity: { sourceIp: "test-invoke-source-ip" },
        connectionId: null,
      },
      body: null,
      isBase64Encoded: false,
    },
  ],
  [
    "a health check of a load balancer",
    {
      requestContext: { elb: { targetGroupArn: "arn:aws:elasticloadbalancing" } },
      httpMethod: "GET",
      path: "/pets",
      queryStringParameters: {},
      headers: { "user-agent": "ELB-HealthChecker/2.0" },
      body: "",
      isBase64Encoded: false,
    },
  ],
];

test.each(sparse)("answers %s", async (_name, event) => {
  expect(await invoke(event)).toMatchObject({ statusCode: 200 });
});
