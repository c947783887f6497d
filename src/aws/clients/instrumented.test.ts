import { SQSClient } from "@aws-sdk/client-sqs";
import { expect, test } from "vitest";
import { isInstrumented } from "./instrumented.ts";

test("a client is instrumented where what it sends with is marked, as OpenTelemetry's instrumentations mark what they wrap", () => {
  const client = new SQSClient({ region: "us-east-1" });
  expect(isInstrumented(client)).toBe(false);
  expect(isInstrumented({ send: Object.assign(() => undefined, { __wrapped: true }) })).toBe(true);
  client.destroy();
});
