import { describe, expect, test } from "vitest";
import { defineFeature } from "../../../app/features/feature.ts";
import { createRegistry } from "../../../app/registry/registry.ts";
import { buildServer } from "../../../app/server/server.ts";
import { BootError } from "../../../base/errors/boot.ts";
import type { OverridesOf } from "./app-overrides.ts";
import { createTenantConfig } from "./declaration.ts";
import { type ConfigKeyHandle, configKeyId, hasKebabCase, successorOf } from "./key.ts";

/** The identifier as the type of overrides computes it: it has to be the text. */
type Id<Name extends string> = keyof OverridesOf<
  [{ name: "files"; config: Record<Name, ConfigKeyHandle<number>> }]
> &
  `files:${string}`;
const named = <const Name extends string>(name: Name, id: NoInfer<Id<Name>>): [string, string] => [
  name,
  id,
];

describe("configKeyId", () => {
  test.each([
    named("maxUploadSizeMb", "files:config:max-upload-size-mb"),
    named("quota", "files:config:quota"),
    named("maxURLLength", "files:config:max-url-length"),
    named("s3Bucket", "files:config:s3-bucket"),
    named("oauth2Token", "files:config:oauth2-token"),
    named("MaxSize", "files:config:max-size"),
    named("already-kebab", "files:config:already-kebab"),
    named("already-Kebab", "files:config:already-kebab"),
    named("PDFs", "files:config:pd-fs"),
    named("aB1C", "files:config:a-b1-c"),
    named(
      "isAConfigKeyWhoseNameIsSoLongThatNobodyWouldWriteItTwice",
      "files:config:is-a-config-key-whose-name-is-so-long-that-nobody-would-write-it-twice",
    ),
  ])("turns %s of feature files into %s", (name, id) => {
    expect(configKeyId("files", name)).toBe(id);
    expect(hasKebabCase(name)).toBe(true);
  });
});

describe("hasKebabCase", () => {
  test.each([
    "",
    "max_size",
    "2fast",
    "größe",
    "a b",
    "a--b",
    "-a",
    "a-",
    "$a",
    "a:b",
    "a#b",
    "a\n",
    "__proto__",
  ])("returns false for %j", (name) => {
    expect(hasKebabCase(name)).toBe(false);
  });
});

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
