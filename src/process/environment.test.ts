import { expect, test } from "vitest";
import { environmentOf, isWatched } from "./environment.ts";

test.each([
  [{ NODE_ENV: "development" }, "development"],
  [{ NODE_ENV: "test" }, "test"],
  [{ NODE_ENV: "Development" }, "production"],
  [{}, "production"],
])("%j is %s", (variables, environment) => {
  expect(environmentOf(variables)).toBe(environment);
});

test.each([
  [{ WATCH_REPORT_DEPENDENCIES: "1" }, true],
  [{ KEELSON_WATCH: "1" }, true],
  [{ KEELSON_WATCH: "0" }, false],
  [{ KEELSON_WATCH: "" }, false],
  [{}, false],
])("that a process is restarted with each change is told by %j: %s", (variables, is) => {
  expect(isWatched(variables)).toBe(is);
});
