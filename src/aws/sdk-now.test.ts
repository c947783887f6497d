import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { expect, test } from "vitest";
import { findSdk } from "./sdk-now.ts";

test("the SDK is found beside the file that asks for it, and is the one that everybody else has", () => {
  expect(findSdk()?.().DynamoDBDocumentClient).toBe(DynamoDBDocumentClient);
});

test.each([
  ["a bundle that names its files otherwise", "file:///var/task/index.mjs"],
  ["a bundle in CommonJS, which has no URL", ""],
  ["what is no file", "data:text/javascript,"],
])("it is not found from %s", (_what, here) => {
  expect(findSdk(here)).toBeUndefined();
});
