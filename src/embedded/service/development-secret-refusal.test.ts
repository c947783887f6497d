import { expect, test } from "vitest";
import { refuseInProduction } from "./development-secret.ts";

test.each(["development", "test"])("accepts NODE_ENV=%s", (name) => {
  expect(() => refuseInProduction("It", { NODE_ENV: name })).not.toThrow();
});

test.each([
  [{}, "It is for development and tests, and NODE_ENV is not set: set NODE_ENV=development"],
  [{ NODE_ENV: "production" }, 'and NODE_ENV is "production": set NODE_ENV=development'],
  [{ NODE_ENV: "Development" }, 'and NODE_ENV is "Development"'],
  [
    { NODE_ENV: "development", AWS_LAMBDA_FUNCTION_NAME: "f" },
    "It is not for Lambda, and this process runs in Lambda",
  ],
  [
    { NODE_ENV: "development", AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" },
    "It is not for Lambda, and this process runs in Lambda",
  ],
])("refuses %j, saying why", (env, message) => {
  expect(() => refuseInProduction("It", env)).toThrow(message);
});
