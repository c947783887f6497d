import type { APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import { defined } from "../../base/types/defined.ts";

/** Request from which {@link lambdaEvent} creates an event. */
export interface LambdaRequest {
  /** HTTP method. Default `GET`, or `POST` if there is a body. */
  readonly method?: string;
  /** Path and query, encoded as a client sends them: `/files/a%20b?tag=x&tag=y`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cookies, each in the form `name=value`. */
  readonly cookies?: readonly string[];
  /** Body: objects are sent as JSON, strings unchanged, and bytes as base64. */
  readonly body?: unknown;
  /** IP address of the client. Default 203.0.113.9. */
  readonly ip?: string;
}

/** Request through an API Gateway. */
export interface LambdaGatewayRequest extends LambdaRequest {
  /** Stage of the API. Default `$default` for an HTTP API, `test` for a REST API. */
  readonly stage?: string;
  /** Claims verified by the gateway's authorizer (JWT or Cognito). Default: no authorizer. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

const account = { accountId: "123456789012", apiId: "test" };

export const httpEvents = {
  restApi: restApiEvent,
  httpApi: httpApiEvent,
  httpApiV1: httpApiV1Event,
  functionUrl: functionUrlEvent,
  loadBalancer: loadBalancerEvent,
  loadBalancerMultiValue: loadBalancerMultiValueEvent,
};

/** The path excludes the stage and stays encoded as the client sent it. */
function restApiEvent(request: LambdaGatewayRequest) {
  const { stage = "test", claims } = request;
  return version1(request, sentRequest(request).path, stage, claims && { claims });
}

function httpApiV1Event(request: LambdaGatewayRequest) {
  const { stage = "$default", claims } = request;
  const authorizer = claims && { claims, scopes: null };
  const event = version1(request, stagedPath(request, stage), stage, authorizer);
  return Object.assign(event, { version: "1.0" });
}

function httpApiEvent(request: LambdaGatewayRequest) {
  const { stage = "$default", claims } = request;
  const domainName = "test.execute-api.us-east-1.amazonaws.com";
  const authorizer = claims && { authorizer: { jwt: { claims, scopes: null } } };
  return version2(request, stagedPath(request, stage), { stage, domainName, ...authorizer });
}

/** The path stays encoded as the client sent it. */
function functionUrlEvent(request: LambdaRequest) {
  const domainName = "test.lambda-url.us-east-1.on.aws";
  return version2(request, sentRequest(request).path, { stage: "$default", domainName });
}

/** Values stay encoded, and a repeated name keeps only its last value. */
function loadBalancerEvent(request: LambdaRequest) {
  const { headers, query, ...rest } = balanced(request);
  const queryStringParameters = Object.fromEntries(query);
  return { ...rest, headers: Object.fromEntries(headers), queryStringParameters };
}

function loadBalancerMultiValueEvent(request: LambdaRequest) {
  const { headers, query, ...rest } = balanced(request);
  const lists = {
    multiValueHeaders: listsOf(headers),
    multiValueQueryStringParameters: listsOf(query),
  };
  return { ...rest, ...lists };
}

function version1(
  request: LambdaRequest,
  path: string,
  stage: string,
  authorizer: object | undefined,
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
      requestTimeEpoch: Date.now(),
      resourceId: "test",
      resourcePath: "/{proxy+}",
    },
    body,
    isBase64Encoded,
  };
}

const nobody = {
  ...{ accessKey: null, apiKey: null, apiKeyId: null, clientCert: null },
  ...{ accountId: null, caller: null, user: null, userArn: null, principalOrgId: null },
  ...{ cognitoAuthenticationProvider: null, cognitoAuthenticationType: null },
  ...{ cognitoIdentityId: null, cognitoIdentityPoolId: null },
};

function version2(
  request: LambdaRequest,
  rawPath: string,
  context: { readonly stage: string; readonly domainName: string; readonly authorizer?: object },
): APIGatewayProxyEventV2 {
  const { method, query, headers, cookies, body, isBase64Encoded, ip } = sentRequest(request);
  const lists = Object.entries(listsOf(new URLSearchParams(query)));
  const parameters = lists.map(([name, values]) => [name, values.join(",")]);
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath,
    rawQueryString: query,
    headers: Object.fromEntries(lowered(headers)),
    ...(cookies.length > 0 && { cookies: [...cookies] }),
    ...(parameters.length > 0 && { queryStringParameters: Object.fromEntries(parameters) }),
    requestContext: {
      ...account,
      domainPrefix: "test",
      http: { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: ip, userAgent: "test" },
      requestId: crypto.randomUUID(),
      routeKey: "$default",
      time: new Date().toISOString(),
      timeEpoch: Date.now(),
      ...context,
    },
    ...defined({ body }),
    isBase64Encoded,
  };
}

function balanced(request: LambdaRequest) {
  const { method, path, query, cookies, body = "", ip, ...sent } = sentRequest(request);
  const given = lowered(sent.headers);
  const forwarded = given.find(([name]) => name === "x-forwarded-for")?.[1];
  const headers: Headers = [
    ...given.filter(([name]) => name !== "x-forwarded-for"),
    ...(cookies.length === 0 ? [] : [["cookie", cookies.join("; ")] as const]),
    ["x-forwarded-for", forwarded === undefined ? ip : `${forwarded}, ${ip}`],
    ["x-forwarded-port", "443"],
    ["x-forwarded-proto", "https"],
  ];
  const group = `${account.accountId}:targetgroup/test/1`;
  return {
    requestContext: {
      elb: { targetGroupArn: `arn:aws:elasticloadbalancing:us-east-1:${group}` },
    },
    httpMethod: method,
    path,
    headers,
    query: query.split("&").flatMap((pair) => {
      const [name = "", ...value] = pair.split("=");
      return pair === "" ? [] : [[name, value.join("=")] as const];
    }),
    body,
    isBase64Encoded: sent.isBase64Encoded,
  };
}

type Headers = readonly (readonly [name: string, value: string])[];

/** `path` and `query` are encoded; `query` has no `?`. */
function sentRequest({
  path: pathAndQuery,
  body,
  method = body === undefined ? "GET" : "POST",
  headers: given = {},
  cookies = [],
  ip = "203.0.113.9",
}: LambdaRequest) {
  const [path = "", ...query] = pathAndQuery.split("?");
  const isBase64Encoded = ArrayBuffer.isView(body);
  const isObject = typeof body !== "string" && body !== undefined && !isBase64Encoded;
  const isTyped = Object.keys(given).some((name) => name.toLowerCase() === "content-type");
  const type = isObject && !isTyped ? [["content-type", "application/json"] as const] : [];
  const headers: Headers = [...type, ...Object.entries(given)];
  const text = isObject ? JSON.stringify(body) : textOf(body);
  return {
    method,
    path,
    query: query.join("?"),
    headers,
    cookies,
    body: text,
    isBase64Encoded,
    ip,
  };
}

function textOf(body: unknown) {
  if (ArrayBuffer.isView(body))
    return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64");
  return body === undefined ? undefined : String(body);
}

function lowered(headers: Headers): Headers {
  return headers.map(([name, value]) => [name.toLowerCase(), value]);
}

function listsOf(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const lists = [...Map.groupBy(pairs, ([name]) => name)];
  return Object.fromEntries(lists.map(([name, all]) => [name, all.map(([, value]) => value)]));
}

/** Prefixes the stage to the path, decoded if possible, as in API Gateway. */
function stagedPath(request: LambdaRequest, stage: string) {
  const { path } = sentRequest(request);
  const prefix = stage === "$default" ? "" : `/${stage}`;
  try {
    return `${prefix}${decodeURIComponent(path)}`;
  } catch {
    return `${prefix}${path}`;
  }
}
