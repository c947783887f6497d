import type { Context } from "aws-lambda";

/** Options of {@link lambdaContext}. */
export interface LambdaContextOptions {
  /** How much time the invocation has, in milliseconds. Default 30,000. It runs out in real time. */
  readonly timeoutMs?: number;
  /** Default: a new one. */
  readonly awsRequestId?: string;
  /** Default `test`. */
  readonly functionName?: string;
  /** The tenant that the function is invoked for, as with Lambda's tenant isolation mode. Default: none. */
  readonly tenantId?: string;
}

/**
 * Makes the context of an invocation.
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
