import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { BootError } from "../../base/errors/boot.ts";
import { buildServer } from "../server/server.ts";
import { defineFeature } from "./feature.ts";

type Methods = Readonly<Record<string, (...given: unknown[]) => unknown>>;

const handler = async () => ({});

function late(shown: string): Error {
  return new Error(
    `defineFeature("late"): ${shown} is called after the declaration function has ended, so no server gets what it declares; declare everything before the function returns`,
  );
}

test("every method of `r` throws once the declaration function has returned", () => {
  let kept: Methods = {};
  const feature = defineFeature("late", (r) => {
    kept = r as unknown as Methods; // so that it may be called wrongly
    r.query("note.list", { handler });
  });
  const { registry } = buildServer({ features: [feature] });

  expect(Object.keys(kept)).toContain("rateLimit");
  for (const [name, method] of Object.entries(kept)) {
    expect(() => method("note.show", { handler }), name).toThrow(late(`r.${name}("note.show")`));
    expect(() => method({ keys: {} }), name).toThrow(late(`r.${name}`));
  }
  expect([...registry.handlers.keys()]).toEqual(["late.note.list"]);
});

test("a method of `r` throws once the declaration function has thrown", () => {
  let query: unknown;
  const failed = () =>
    defineFeature("late", (r) => {
      ({ query } = r);
      throw new RangeError("no database");
    });
  expect(failed).toThrow(new RangeError("no database"));
  // Safe cast: the function was `r.query`.
  expect(() => (query as Methods[string])("note.show", { handler })).toThrow(
    late('r.query("note.show")'),
  );
});

test("a late call in an asynchronous declaration function leaves its boot problem the only failure", async () => {
  let thrown: unknown;
  const declare = async (r: Methods) => {
    await setImmediate();
    try {
      r["query"]?.("note.show", { handler });
    } catch (error) {
      thrown = error;
      throw error;
    }
  };
  const feature = defineFeature("late", declare as never);
  await setImmediate();
  await setImmediate(); // an unhandled rejection would fail the test run
  expect(thrown).toEqual(late('r.query("note.show")'));

  let problems: BootError["problems"] = [];
  try {
    buildServer({ features: [feature] });
  } catch (error) {
    problems = (error as BootError).problems; // safe: buildServer throws nothing else
  }
  expect(problems.map(({ rule }) => rule)).toEqual(["feature-async"]);
});
