import { expect, test } from "vitest";
import { eventRule } from "./rules.ts";

test("the rule of a source has a name that EventBridge takes", () => {
  expect(eventRule("my.app").name).toBe("my-app-events");
  expect(eventRule("a".repeat(57)).name).toBe(`${"a".repeat(57)}-events`);
  expect(eventRule("a".repeat(100)).name).toHaveLength(64);
});
