/** The second argument of a Lambda function. */
export const context = {
  functionName: "sample",
  functionVersion: "$LATEST",
  invokedFunctionArn: "arn:aws:lambda:us-east-1:000000000000:function:sample",
  memoryLimitInMB: "512",
  awsRequestId: "6f2c1f5e-0000-4000-8000-000000000001",
  getRemainingTimeInMillis: () => 30_000,
};

/** An event of an HTTP API. */
export function httpEvent(method, path, { body, headers }) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: path,
    rawQueryString: "",
    headers: { ...headers, ...(text === undefined ? {} : { "content-type": "application/json" }) },
    requestContext: {
      http: { method, path, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "walks" },
      requestId: "JKJaXmPLvHcESHA=",
      stage: "$default",
    },
    ...(text === undefined ? {} : { body: text }),
    isBase64Encoded: false,
  };
}

/** The event that Lambda creates from a received message. */
export function queueEvent({ MessageId, ReceiptHandle, Body, Attributes }) {
  const record = {
    messageId: MessageId,
    receiptHandle: ReceiptHandle,
    body: Body,
    attributes: Attributes,
    messageAttributes: {},
    md5OfBody: "",
    eventSource: "aws:sqs",
    eventSourceARN: "arn:aws:sqs:us-east-1:000000000000:keelson-events",
    awsRegion: "us-east-1",
  };
  return { Records: [record] };
}
