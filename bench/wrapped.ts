import { search } from "@aws-lambda-powertools/jmespath";
import { Logger } from "@aws-lambda-powertools/logger";
import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { DynamoDBProvider } from "@aws-lambda-powertools/parameters/dynamodb";
import middy, { type MiddlewareObj } from "@middy/core";
import httpErrorHandler from "@middy/http-error-handler";
import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyStructuredResultV2,
  Context,
} from "aws-lambda";
import { lambdaHandler } from "../src/hosts/lambda/index.ts";
import { server } from "./feature.ts";
import { type Result, sideBySide } from "./measure.ts";

/**
 * One event of an HTTP API through the whole wrapper. Beside what both do, ours finds the route, checks the request
 * ID, keeps an ambient store and bounds and redacts its lines: the peer has none of these.
 */
export async function wrappedResults(): Promise<Result[]> {
  return [
    await sideBySide({
      id: "wrapped-no-log",
      times: 20_000,
      ours: invoking(lambdaHandler(server, "files.limits.silent"), limitsEvent("silent")),
      peer: invoking(peer(), limitsEvent("silent")),
    }),
    await sideBySide({
      id: "wrapped-one-log",
      times: 20_000,
      ours: invoking(lambdaHandler(server, "files.limits.logged"), limitsEvent("logged")),
      peer: invoking(peer({ isLogged: true }), limitsEvent("logged")),
    }),
  ];
}

/** A function of Lambda's. */
export type Invocable = (event: APIGatewayProxyEventV2, context: Context) => unknown;

/** A new event each time, since middlewares may write on it; that costs both the same. */
export function invoking(handler: Invocable, template: APIGatewayProxyEventV2) {
  return async (times: number) => {
    for (let i = 0; i < times; i++) {
      const answer = (await handler(
        { ...template, headers: { ...template.headers } },
        context,
      )) as { body?: string };
      if (answer.body !== '{"maxMb":77}')
        throw new Error(`not the answer: ${JSON.stringify(answer)}`);
    }
  };
}

/** What the peer does beside. */
interface PeerOptions {
  /** Default: false. */
  readonly isLogged?: boolean;
  readonly middlewares?: readonly MiddlewareObj[];
  /** Called in the handler. */
  readonly onRead?: () => void;
}

/** What a team assembles: Middy, its error handler, and the Powertools Logger with a correlation ID. */
export function peer({ isLogged = false, middlewares = [], onRead }: PeerOptions = {}): Invocable {
  // Safe: an event is JSON.
  const logger = new Logger({
    serviceName: "files",
    correlationIdSearchFn: search as (expression: string, data: unknown) => unknown,
  });
  const parameters = new DynamoDBProvider({ tableName: "keelson-parameters" });
  const stack = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>();
  stack
    .use(
      injectLambdaContext(logger, { correlationIdPath: 'headers."x-request-id"', resetKeys: true }),
    )
    .use(httpErrorHandler({ logger: (error) => logger.error("request.failed", error as Error) }));
  for (const middleware of middlewares) stack.use(middleware);
  const handler = async (event: APIGatewayProxyEventV2) => {
    const maxMb = Number(await parameters.get("max-upload-size-mb", { maxAge: 3_600 }));
    if (isLogged) logger.info("limits.read", { maxMb, plan: "pro" });
    onRead?.();
    return {
      statusCode: 200,
      headers: {
        "content-type": "application/json",
        "x-request-id": event.headers["x-request-id"] ?? "",
      },
      body: JSON.stringify({ maxMb }),
    };
  };
  // Safe: Powertools' types of a middleware leave Middy none for the handler.
  return stack.handler(handler as never) as Invocable;
}

/** A GET of a handler of `feature.ts`. */
export function limitsEvent(name: string): APIGatewayProxyEventV2 {
  return eventOf(`/limits/${name}`);
}

/** A GET of a path, as an HTTP API sends it. */
export function eventOf(path: string): APIGatewayProxyEventV2 {
  return {
    version: "2.0",
    routeKey: `GET ${path}`,
    rawPath: path,
    rawQueryString: "",
    headers: {
      accept: "application/json",
      "accept-encoding": "gzip",
      "content-length": "0",
      host: "abcdefghij.execute-api.eu-central-1.amazonaws.com",
      "user-agent": "curl/8.5.0",
      "x-amzn-trace-id": "Root=1-5759e988-bd862e3fe1be46a994272793",
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-port": "443",
      "x-forwarded-proto": "https",
      "x-request-id": "0191e7a0-5d1c-7000-8000-000000000001",
    },
    requestContext: {
      accountId: "123456789012",
      apiId: "abcdefghij",
      domainName: "abcdefghij.execute-api.eu-central-1.amazonaws.com",
      domainPrefix: "abcdefghij",
      http: {
        method: "GET",
        path,
        protocol: "HTTP/1.1",
        sourceIp: "192.0.2.1",
        userAgent: "curl/8.5.0",
      },
      requestId: "JKJaXmPLvHcESHA=",
      routeKey: `GET ${path}`,
      stage: "$default",
      time: "21/Nov/2026:05:00:00 +0000",
      timeEpoch: 1_795_237_200_000,
    },
    isBase64Encoded: false,
  };
}

/** What Lambda's runtime says of an invocation. */
export const context = {
  callbackWaitsForEmptyEventLoop: true,
  functionName: "files",
  functionVersion: "$LATEST",
  invokedFunctionArn: "arn:aws:lambda:eu-central-1:123456789012:function:files",
  memoryLimitInMB: "512",
  awsRequestId: "6f2c1f5e-0000-4000-8000-000000000001",
  logGroupName: "/aws/lambda/files",
  logStreamName: "2026/11/21/[$LATEST]0",
  getRemainingTimeInMillis: () => 30_000,
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
} satisfies Context;
