import { SQSClient } from "@aws-sdk/client-sqs";
import { expect, test } from "vitest";
import { isInstrumented } from "./instrumented.ts";

test("recognizes an instrumented client by the marks that OpenTelemetry puts on the functions it wraps", () => {
  const client = new SQSClient({ region: "us-east-1" });
  expect(isInstrumented(client)).toBe(false);
  expect(isInstrumented({ send: Object.assign(() => undefined, { __wrapped: true }) })).toBe(true);
  client.destroy();
});
