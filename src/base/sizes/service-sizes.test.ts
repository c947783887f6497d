import { expect, test } from "vitest";
import { entryBytes, serviceSizes, tooLarge } from "./service-sizes.ts";

test("counts an entry's texts in bytes, and 14 for a time", () => {
  expect(entryBytes({})).toBe(0);
  expect(entryBytes({ Source: "app", DetailType: "a.b", Detail: '{"a":"€"}' })).toBe(17);
  expect(entryBytes({ Detail: "{}", Resources: ["arn", "ä"], Time: 0 })).toBe(21);
});

test("an error has the size, the limit and the service", () => {
  const error = tooLarge("the job a.b.c", 1_048_577, serviceSizes.sqsMessage, "send less");
  expect(error).toBeInstanceOf(RangeError);
  expect(error.message).toBe("the job a.b.c has 1048577 bytes, and SQS takes 1048576; send less");
});
