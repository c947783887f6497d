import type { Context } from "aws-lambda";

/** Options of {@link lambdaContext}. */
export interface LambdaContextOptions {
  /** Time until the invocation's timeout, in milliseconds of real time. Default 30,000. */
  readonly timeoutMs?: number;
  /** ID of the invocation. Default: a random UUID. */
  readonly awsRequestId?: string;
  /** Name of the function. Default `test`. */
  readonly functionName?: string;
  /** Tenant of the invocation, as in Lambda's tenant isolation mode. Default: no tenant. */
  readonly tenantId?: string;
}

/**
 * Creates the context of a Lambda invocation.
 *
 * @example
 * await handler(event, lambdaContext({ timeoutMs: 3_000 }));
 */
export function lambdaContext(options: LambdaContextOptions = {}): Context {
  const {
    timeoutMs = 30_000,
    awsRequestId = crypto.randomUUID(),
    functionName = "test",
    tenantId,
  } = options;
  const endsMs = performance.now() + timeoutMs;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:us-east-1:123456789012:function:${functionName}`,
    memoryLimitInMB: "1024",
    awsRequestId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: "2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef",
    tenantId,
    getRemainingTimeInMillis: () => Math.max(0, Math.floor(endsMs - performance.now())),
    done() {},
    fail() {},
    succeed() {},
  };
}
