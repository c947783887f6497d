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

test("a former name is one identifier or a list of them, of whatever feature", () => {
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
])("a former name that is no identifier is told: %j", (formerly) => {
  const found = problems({ a: formerly });
  expect(found).toEqual(
    formerly === null
      ? []
      : [expect.stringMatching(/^files:config:a formerly: formerly .* is no identifier$/)],
  );
});

test("a former name that is still declared, be it by itself, or that two keys have had, is told; one that is said twice is one", () => {
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

test("an override under a former name is told the key of now", () => {
  expect(problems({ a: "files:config:max-mb" }, { "files:config:max-mb": 5 })).toEqual([
    "files:config:max-mb override-unknown: the override is for a key that no feature declares; did you mean files:config:a?",
  ]);
});

test("a former name leads to its key; what is no declaration has none", () => {
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
