import { expect, test } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { createRegistry } from "../../../app/registry/registry.ts";
import { buildServer } from "../../../app/server/server.ts";
import { BootError } from "../../../base/errors/boot.ts";
import { createTenantConfig } from "./declaration.ts";
import { successorOf } from "./former-keys.ts";

const featuresOf = (formerly: Readonly<Record<string, unknown>>) => [
  defineFeature("files", (r) => {
    const keys = Object.entries(formerly).map(([name, id]) => [
      name,
      createTenantConfig("number", { formerly: id as string }),
    ]);
    r.config({ keys: Object.fromEntries(keys) });
  }),
  defineFeature("bills", (r) => ({
    config: r.config({ keys: { limit: createTenantConfig("number", {}) } }),
  })),
];

const problems = (formerly: Readonly<Record<string, unknown>>, config = {}) => {
  try {
    buildServer({ features: featuresOf(formerly), config });
    return [];
  } catch (error) {
    if (!(error instanceof BootError)) throw error;
    return error.problems.map(
      ({ key, rule, message, fix }) =>
        `${key} ${rule}: ${message}${rule === "formerly" ? "" : `; ${fix}`}`,
    );
  }
};

test("`formerly` takes one identifier or a list of them, of any feature", () => {
  expect(
    problems({
      a: "files:config:max-mb",
      b: ["old-bills:config:max", "bills:config:max"],
      c: [],
      d: undefined,
    }),
  ).toEqual([]);
});

test.each([
  7,
  null,
  {},
  "max-mb",
  "files:max-mb",
  "files:config:maxMb",
  "files:config:",
  "Files:config:a",
  [7],
  `files:config:${"a".repeat(256)}`,
])("reports a former name that is not an identifier: %j", (formerly) => {
  const found = problems({ a: formerly });
  expect(found).toEqual(
    formerly === null
      ? []
      : [expect.stringMatching(/^files:config:a formerly: formerly .* is no identifier$/)],
  );
});

test("reports a former name that is still declared or belongs to two keys, and ignores duplicates", () => {
  expect(problems({ a: "bills:config:limit", b: "files:config:b" })).toEqual([
    'files:config:a formerly: formerly "bills:config:limit" is another key\'s',
    'files:config:b formerly: formerly "files:config:b" is another key\'s',
  ]);
  expect(
    problems({
      a: "files:config:x",
      b: ["files:config:y", "files:config:x"],
      c: ["files:config:z", "files:config:z"],
    }),
  ).toEqual([
    'files:config:a formerly: formerly "files:config:x" is another key\'s',
    'files:config:b formerly: formerly "files:config:x" is another key\'s',
  ]);
});

test("suggests the current key for an override under a former name", () => {
  expect(problems({ a: "files:config:max-mb" }, { "files:config:max-mb": 5 })).toEqual([
    "files:config:max-mb override-unknown: the override is for a key that no feature declares; did you mean files:config:a?",
  ]);
});

test("finds the key of a former name, and none for an invalid declaration", () => {
  const registry = createRegistry(featuresOf({ a: "files:config:max-mb" }));
  const broken = {
    configKeys: new Map([
      ["x", { id: "x", feature: "f", name: "x", definition: undefined as never }],
    ]),
  };

  expect(successorOf("files:config:max-mb", registry)?.id).toBe("files:config:a");
  expect(successorOf("files:config:a", registry)).toBeUndefined();
  expect(successorOf("files:config:a", broken)).toBeUndefined();
  expect(problems({ a: 5 })).toHaveLength(1);
});
