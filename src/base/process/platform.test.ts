import { expect, test } from "vitest";
import {
  eventFunctionName,
  isOnLambda,
  isStartedOnDemand,
  webFunctionEndpoint,
} from "./platform.ts";

const eventFunction = { AWS_LAMBDA_FUNCTION_NAME: "files" };
const webFunction = { AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" };

test.each([
  [{}, undefined, undefined, false],
  [eventFunction, "files", undefined, true],
  [webFunction, undefined, "0.0.0.0:8080", true],
])("%j is an event function %s or a Web Function at %s: %s", (variables, name, endpoint, is) => {
  expect(eventFunctionName(variables)).toBe(name);
  expect(webFunctionEndpoint(variables)).toBe(endpoint);
  expect(isOnLambda(variables)).toBe(is);
});

test.each([
  [{}, true],
  [{ AWS_LAMBDA_INITIALIZATION_TYPE: "on-demand" }, true],
  [{ AWS_LAMBDA_INITIALIZATION_TYPE: "provisioned-concurrency" }, false],
  [{ AWS_LAMBDA_INITIALIZATION_TYPE: "snap-start" }, false],
  [{ ...webFunction, AWS_LAMBDA_INITIALIZATION_TYPE: "native-http" }, true],
])("knows from %j whether a request waits for the start: %s", (variables, is) => {
  expect(isStartedOnDemand(variables)).toBe(is);
});
