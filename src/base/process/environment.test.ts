import { expect, test } from "vitest";
import { embeddedDirectory, environmentOf, isReloaded, isWatched } from "./environment.ts";

test.each([
  [{ NODE_ENV: "development" }, "development"],
  [{ NODE_ENV: "test" }, "test"],
  [{ NODE_ENV: "Development" }, "production"],
  [{}, "production"],
])("%j means %s", (variables, environment) => {
  expect(environmentOf(variables)).toBe(environment);
});

test.each([
  [{ WATCH_REPORT_DEPENDENCIES: "1" }, true],
  [{ KEELSON_WATCH: "1" }, true],
  [{ KEELSON_WATCH: "0" }, false],
  [{ KEELSON_WATCH: "" }, false],
  [{}, false],
])("detects from %j whether a process restarts with each change: %s", (variables, is) => {
  expect(isWatched(variables)).toBe(is);
});

test.each([
  ["development", true],
  ["test", true],
  ["production", false],
] as const)("shortens nothing for the next process in %s: not %s", (environment, is) => {
  expect(isReloaded({ environment, variables: { KEELSON_WATCH: "1" } })).toBe(is);
  expect(isReloaded({ environment, variables: {} })).toBe(false);
});

test("the embedded stack replaces AWS on this machine, in development and tests", () => {
  expect(embeddedDirectory({ NODE_ENV: "development" })).toBe(".keelson");
  expect(embeddedDirectory({ NODE_ENV: "test", KEELSON_DIRECTORY: "elsewhere" })).toBe("elsewhere");
  expect(
    embeddedDirectory({ NODE_ENV: "production", KEELSON_DIRECTORY: "elsewhere" }),
  ).toBeUndefined();
  expect(embeddedDirectory({ NODE_ENV: "development" }, "production")).toBeUndefined();
  for (const lambda of [
    { AWS_LAMBDA_FUNCTION_NAME: "f" },
    { AWS_LAMBDA_HTTP_ENDPOINT: "0.0.0.0:8080" },
  ])
    expect(embeddedDirectory({ NODE_ENV: "development", ...lambda })).toBeUndefined();
});
