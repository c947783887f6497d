/** A request, whatever delivers it. */
export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const ip = "203.0.113.9";

/** The same request as each kind of trigger delivers it. */
export const triggers = {
  "an HTTP API": (ask: Ask) =>
    version2(ask, { stage: "$default", domainName: "a.execute-api.eu-west-1.amazonaws.com" }),
  "a function URL": (ask: Ask) =>
    version2(ask, { stage: "$default", domainName: "a.lambda-url.eu-west-1.on.aws" }),
  "a REST API": (ask: Ask) => ({
    resource: "/{proxy+}",
    ...version1(ask),
    multiValueQueryStringParameters: null,
    requestContext: {
      stage: "dev",
      path: `/dev${ask.path}`,
      httpMethod: ask.method ?? "GET",
      identity: { sourceIp: ip },
    },
  }),
  "a load balancer": (ask: Ask) => ({
    ...version1(ask),
    multiValueHeaders: undefined,
    headers: { ...headersOf(ask), "x-forwarded-for": ip },
    body: bodyOf(ask) ?? "",
    requestContext: {
      elb: {
        targetGroupArn: "arn:aws:elasticloadbalancing:eu-west-1:000000000000:targetgroup/a/b",
      },
    },
  }),
} as const;

function version2(ask: Ask, context: object): object {
  const { method = "GET", path } = ask;
  const [rawPath, rawQueryString = ""] = path.split("?");
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath,
    rawQueryString,
    headers: headersOf(ask),
    body: bodyOf(ask),
    isBase64Encoded: false,
    requestContext: {
      ...context,
      http: { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: ip, userAgent: "test" },
    },
  };
}

function version1(ask: Ask) {
  const headers = headersOf(ask);
  return {
    httpMethod: ask.method ?? "GET",
    path: ask.path,
    headers,
    multiValueHeaders: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value]]),
    ),
    queryStringParameters: null,
    body: bodyOf(ask) ?? null,
    isBase64Encoded: false,
  };
}

function headersOf({ headers = {}, body }: Ask): Record<string, string> {
  return { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers };
}

function bodyOf({ body }: Ask): string | undefined {
  return body === undefined ? undefined : JSON.stringify(body);
}
