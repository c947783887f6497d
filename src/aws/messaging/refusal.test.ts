import { expect, test } from "vitest";
import { isFinalSendError } from "./refusal.ts";

const failure = (name: string, message = "no", status = 400) =>
  Object.assign(new Error(message), {
    name,
    $fault: "client",
    $metadata: { httpStatusCode: status },
  });
const tooLong =
  "One or more parameters are invalid. Reason: Message must be shorter than 262144 bytes.";

test.each([
  ["characters", failure("InvalidMessageContents")],
  ["its size", failure("InvalidParameterValue", tooLong)],
  ["its size, by another name", failure("InvalidParameterValueException", tooLong)],
  ["the size of the request", failure("RequestEntityTooLarge")],
  ["the size of the request, by its status", failure("UnknownError", "no", 413)],
])("a message is rejected for good because of %s", (_what, error) => {
  expect(isFinalSendError(error)).toBe(true);
});

test.each([
  [
    "the parameters that the queue's kind takes",
    failure("InvalidParameterValue", "not valid for this queue type"),
  ],
  ["a queue that is gone", failure("QueueDoesNotExist")],
  ["permissions", failure("AccessDenied", "no", 403)],
  ["a throttle", failure("RequestThrottled")],
  ["a failing service", failure("InternalError", "no", 500)],
  ["the connection", new Error("connect ECONNREFUSED")],
  ["a text", "no"],
  ["nothing", undefined],
])("%s does not blame the message", (_what, error) => {
  expect(isFinalSendError(error)).toBe(false);
});
