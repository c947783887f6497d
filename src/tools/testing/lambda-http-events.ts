import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import {
  decodedPath,
  type LambdaGatewayRequest,
  type LambdaRequest,
  listsOf,
  sentRequest,
} from "./lambda-request.ts";

const account = { accountId: "123456789012", apiId: "test" };
const now = () => ({ time: new Date().toISOString(), timeEpoch: Date.now() });

export const httpEvents = {
  restApi: restApiEvent,
  httpApi: httpApiEvent,
  httpApiV1: httpApiV1Event,
  functionUrl: functionUrlEvent,
  loadBalancer: loadBalancerEvent,
  loadBalancerMultiValue: loadBalancerMultiValueEvent,
};

/** In this event, the path excludes the stage and stays encoded as the client sent it. */
function restApiEvent(request: LambdaGatewayRequest): APIGatewayProxyEvent {
  const { stage = "test", claims } = request;
  const authorizer = claims && { claims };
  return version1(request, { path: sentRequest(request).path, stage, authorizer });
}

/** In this event, the path is decoded and prefixed with the stage. */
function httpApiV1Event(request: LambdaGatewayRequest): APIGatewayProxyEvent {
  const { stage = "$default", claims } = request;
  const path = withStage(decodedPath(sentRequest(request).path), stage);
  const authorizer = claims && { claims, scopes: null };
  return Object.assign(version1(request, { path, stage, authorizer }), { version: "1.0" });
}

/** In this event, the path is decoded and prefixed with the stage. */
function httpApiEvent(request: LambdaGatewayRequest): APIGatewayProxyEventV2 {
  const { stage = "$default", claims } = request;
  const rawPath = withStage(decodedPath(sentRequest(request).path), stage);
  const domainName = "test.execute-api.us-east-1.amazonaws.com";
  const authorizer = claims && { authorizer: { jwt: { claims, scopes: null } } };
  return version2(request, rawPath, { stage, domainName, ...authorizer });
}

/** In this event, the path stays encoded as the client sent it. */
function functionUrlEvent(request: LambdaRequest): APIGatewayProxyEventV2 {
  const domainName = "test.lambda-url.us-east-1.on.aws";
  return version2(request, sentRequest(request).path, { stage: "$default", domainName });
}

/** In this event, values stay encoded, and a repeated name keeps only its last value. */
function loadBalancerEvent(request: LambdaRequest): ALBEvent {
  const { headers, query, ...rest } = balanced(request);
  const queryStringParameters = Object.fromEntries(query);
  return { ...rest, headers: Object.fromEntries(headers), queryStringParameters };
}

function loadBalancerMultiValueEvent(request: LambdaRequest): ALBEvent {
  const { headers, query, ...rest } = balanced(request);
  return {
    ...rest,
    multiValueHeaders: listsOf(headers),
    multiValueQueryStringParameters: listsOf(query),
  };
}

interface Version1 {
  readonly path: string;
  readonly stage: string;
  readonly authorizer: object | undefined;
}

function version1(
  request: LambdaGatewayRequest,
  { path, stage, authorizer }: Version1,
): APIGatewayProxyEvent {
  const { method, body = null, isBase64Encoded, ip, ...sent } = sentRequest(request);
  const headers = [...sent.headers, ...sent.cookies.map((cookie) => ["Cookie", cookie] as const)];
  const query = [...new URLSearchParams(sent.query)];
  return {
    resource: "/{proxy+}",
    path,
    httpMethod: method,
    headers: Object.fromEntries(headers),
    multiValueHeaders: listsOf(headers),
    queryStringParameters: query.length === 0 ? null : Object.fromEntries(query),
    multiValueQueryStringParameters: query.length === 0 ? null : listsOf(query),
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: {
      ...account,
      authorizer,
      protocol: "HTTP/1.1",
      httpMethod: method,
      identity: { ...nobody, sourceIp: ip, userAgent: "test" },
      path: `/${stage}${sent.path}`,
      stage,
      requestId: crypto.randomUUID(),
      requestTimeEpoch: now().timeEpoch,
      resourceId: "test",
      resourcePath: "/{proxy+}",
    },
    body,
    isBase64Encoded,
  };
}

/** Client without a certificate, an API key or an AWS account. */
const nobody = {
  ...{ accessKey: null, apiKey: null, apiKeyId: null, clientCert: null },
  ...{ accountId: null, caller: null, user: null, userArn: null, principalOrgId: null },
  ...{ cognitoAuthenticationProvider: null, cognitoAuthenticationType: null },
  ...{ cognitoIdentityId: null, cognitoIdentityPoolId: null },
};

interface Version2 {
  readonly stage: string;
  readonly domainName: string;
  readonly authorizer?: object;
}

function version2(
  request: LambdaRequest,
  rawPath: string,
  context: Version2,
): APIGatewayProxyEventV2 {
  const { method, query, headers, cookies, body, isBase64Encoded, ip } = sentRequest(request);
  const lists = Object.entries(listsOf(new URLSearchParams(query)));
  const parameters = lists.map(([name, values]) => [name, values.join(",")]);
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath,
    rawQueryString: query,
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    ...(cookies.length === 0 ? {} : { cookies: [...cookies] }),
    ...(parameters.length === 0 ? {} : { queryStringParameters: Object.fromEntries(parameters) }),
    requestContext: {
      ...account,
      domainPrefix: "test",
      http: { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: ip, userAgent: "test" },
      requestId: crypto.randomUUID(),
      routeKey: "$default",
      ...now(),
      ...context,
    },
    ...(body === undefined ? {} : { body }),
    isBase64Encoded,
  };
}

function balanced(request: LambdaRequest) {
  const { method, path, query, headers, cookies, body = "", ...sent } = sentRequest(request);
  const lowered = headers.map(([name, value]) => [name.toLowerCase(), value] as const);
  const forwarded = lowered.find(([name]) => name === "x-forwarded-for")?.[1];
  const group = `${account.accountId}:targetgroup/test/1`;
  return {
    requestContext: {
      elb: { targetGroupArn: `arn:aws:elasticloadbalancing:us-east-1:${group}` },
    },
    httpMethod: method,
    path,
    headers: [
      ...lowered.filter(([name]) => name !== "x-forwarded-for"),
      ...(cookies.length === 0 ? [] : [["cookie", cookies.join("; ")] as const]),
      ["x-forwarded-for", forwarded === undefined ? sent.ip : `${forwarded}, ${sent.ip}`] as const,
      ["x-forwarded-port", "443"] as const,
      ["x-forwarded-proto", "https"] as const,
    ],
    query: query.split("&").flatMap((pair) => {
      const [name = "", ...value] = pair.split("=");
      return pair === "" ? [] : [[name, value.join("=")] as const];
    }),
    body,
    isBase64Encoded: sent.isBase64Encoded,
  };
}

function withStage(path: string, stage: string): string {
  return stage === "$default" ? path : `/${stage}${path}`;
}
