import { expect, test } from "vitest";
import { everyone } from "../../../../test/support/server-templates.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { functionGroups } from "./groups.ts";

/** The groups of a feature with these handlers. */
function groupsOf(handlers: readonly string[]) {
  const feature = defineFeature("mugs", (r) => {
    for (const name of handlers) r.query(`${name}.show`, { route: `GET /${name}`, ...everyone });
  });
  return functionGroups(serverInternals(buildServer({ features: [feature] })));
}

const stacksOf = (handlers: readonly string[]) =>
  new Map(
    groupsOf(handlers).flatMap(({ stack, functions }) => functions.map((name) => [name, stack])),
  );

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `mug${index}`);

test("up to 50 functions of a feature are one group, which has the feature's name", () => {
  expect(groupsOf(numbered(50)).map(({ name, stack }) => [name, stack])).toEqual([
    ["mugs", "MugsFunctions"],
  ]);
});

test("more are several groups, none with more than 50 functions and none without any", () => {
  for (const count of [51, 60, 99, 120, 200]) {
    const groups = groupsOf(numbered(count));
    const sizes = groups.map(({ functions }) => functions.length);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(count);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(50);
    expect(Math.min(...sizes)).toBeGreaterThan(0);
    expect(new Set(groups.map(({ name }) => name)).size).toBe(groups.length);
  }
});

test("a handler that is deleted moves no other to another group", () => {
  const all = numbered(60);
  const before = stacksOf(all);
  expect(new Set(before.values())).toEqual(new Set(["MugsFunctions", "MugsFunctions2"]));
  for (const index of [0, 2, 30, 59]) {
    const after = stacksOf(all.toSpliced(index, 1));
    expect(after.size).toBe(59);
    for (const [name, stack] of after) expect([name, stack]).toEqual([name, before.get(name)]);
  }
});

test("a handler that is inserted moves no other to another group", () => {
  const all = numbered(60);
  const before = stacksOf(all);
  for (const index of [0, 2, 30, 60]) {
    const after = stacksOf(all.toSpliced(index, 0, "cup"));
    expect(after.size).toBe(61);
    for (const [name, stack] of before) expect([name, stack]).toEqual([name, after.get(name)]);
  }
});
