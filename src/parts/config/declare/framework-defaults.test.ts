import { expect, test } from "vitest";
import { createTenantConfig } from "./declaration.ts";
import { frameworkDefault } from "./framework-defaults.ts";

const id = "files:config:max-upload-size-mb";

test("the maximum upload size defaults to 10 MB", () => {
  expect(frameworkDefault(id, createTenantConfig("number", {}).definition)).toBe(10);
});

test("the framework default is clamped to the declared bounds", () => {
  const within = (min: number, max: number) =>
    frameworkDefault(id, createTenantConfig("number", { bounds: { min, max } }).definition);
  expect([within(1, 100), within(20, 100), within(1, 5)]).toEqual([10, 20, 5]);
});

test("the framework default does not apply to a key of another type or to another key", () => {
  expect(frameworkDefault(id, createTenantConfig("text", {}).definition)).toBeUndefined();
  expect(
    frameworkDefault("files:config:other", createTenantConfig("number", {}).definition),
  ).toBeUndefined();
  expect(
    frameworkDefault("__proto__", createTenantConfig("number", {}).definition),
  ).toBeUndefined();
});
