import { expect, test } from "vitest";
import type { BootError } from "../../base/errors/boot.ts";
import { defineFeature } from "../features/feature.ts";
import { createRegistry } from "../registry/registry.ts";
import { buildServer } from "../server/server.ts";

type Options = Record<string, unknown>;

/** What a server says of a table that is declared with these options, as plain JavaScript might give them. */
function problemsOf(options: unknown): string[] {
  const feature = defineFeature("shelf", (r) => void r.table("files", options as never));
  try {
    buildServer({ features: [feature] });
  } catch (error) {
    // Safe: buildServer throws nothing else.
    return (error as BootError).problems.map(
      ({ key, rule, message }) => `${key}: ${rule}: ${message}`,
    );
  }
  return [];
}

const withIndexes = (indexes: unknown) =>
  problemsOf({ partitionKey: "pk", sortKey: "sk", tenant: false, indexes });
const withIndex = (index: unknown) => withIndexes({ byOwner: index });
const named = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, n) => `${prefix}${n}`);
const many = (count: number, options: Options = {}) =>
  Object.fromEntries(
    named(count, "by").map((name) => [`${name}.x`, { partitionKey: name, ...options }]),
  );

test("indexes are declared with their table, and the registry lists them", () => {
  const feature = defineFeature("shelf", (r) => {
    r.table("plain", { partitionKey: "pk", tenant: false });
    r.table("files", {
      partitionKey: "pk",
      sortKey: "sk",
      indexes: {
        byOwner: { partitionKey: "owner", sortKey: "createdAt" },
        "by-state_1.x": { partitionKey: "state", project: ["size", "pk", "state", "size"] },
        keys: { partitionKey: "sk", sortKey: "pk", project: [] },
      },
      tenant: false,
    });
  });
  const { tables, problems } = createRegistry([feature]);
  expect(problems).toEqual([]);
  expect(tables.get("plain")?.indexes).toEqual([]);
  expect(tables.get("files")?.indexes).toEqual([
    { name: "byOwner", partitionKey: "owner", sortKey: "createdAt", project: undefined },
    { name: "by-state_1.x", partitionKey: "state", sortKey: undefined, project: ["size"] },
    { name: "keys", partitionKey: "sk", sortKey: "pk", project: [] },
  ]);
});

test("a table's handle knows exactly the names of its indexes", () => {
  defineFeature("shelf", (r) => {
    const files = r.table("files", {
      partitionKey: "pk",
      indexes: { byOwner: { partitionKey: "owner" } },
      tenant: false,
    });
    expect(files.index("byOwner")).toBe("byOwner");
    expect(() => files.index("byOner" as never)).toThrow(
      'table "files": no index "byOner"; declared are byOwner',
    );
    expect(() => files.index("toString" as never)).toThrow("no index");
    const plain = r.table("plain", { partitionKey: "pk", tenant: false });
    expect(() => plain.index("byOwner" as never)).toThrow(
      'table "plain": no index "byOwner"; declared are none',
    );
  });
});

test.each([[null], ["byOwner"], [[{ partitionKey: "owner" }]]])(
  "%j is refused as the indexes of a table",
  (indexes) => {
    expect(withIndexes(indexes)).toEqual([
      "table files: table-indexes: `indexes` is not an object of indexes by name",
    ]);
  },
);

test.each(["by", "by owner", "", "x".repeat(256)])("%j is refused as an index name", (name) => {
  expect(withIndexes({ [name]: { partitionKey: "owner" } })).toEqual([
    expect.stringContaining(": index-name: DynamoDB does not accept the index name"),
  ]);
});

test.each<[string, unknown]>([
  ["none", {}],
  ["no options at all", null],
  ["an empty name", { partitionKey: "" }],
  ["a name that is too long", { partitionKey: "ä".repeat(128) }],
  ["an empty sort key", { partitionKey: "owner", sortKey: "" }],
  ["a number", { partitionKey: "owner", sortKey: 7 }],
  ["one attribute twice", { partitionKey: "owner", sortKey: "owner" }],
])("index keys are refused: %s", (_, options) => {
  expect(withIndex(options)).toEqual([
    "table files index byOwner: index-keys: `partitionKey` and `sortKey` are not two attribute names",
  ]);
});

test("an index may have either key of the table, or both swapped, but not the same keys", () => {
  expect(withIndex({ partitionKey: "pk", sortKey: "sk" })).toEqual([
    "table files index byOwner: index-keys: its keys are the table's own",
  ]);
  expect(withIndex({ partitionKey: "pk" })).toEqual([]);
  expect(withIndex({ partitionKey: "sk", sortKey: "pk" })).toEqual([]);
  expect(
    problemsOf({ partitionKey: "pk", tenant: false, indexes: { same: { partitionKey: "pk" } } }),
  ).toHaveLength(1);
});

test.each([[{}], ["size"], [["size", ""]], [[7]]])(
  "%j is refused as an index projection",
  (project) => {
    expect(withIndex({ partitionKey: "owner", project })).toEqual([
      "table files index byOwner: index-project: `project` is not a list of attribute names",
    ]);
  },
);

test("DynamoDB's limits are enforced: 20 indexes, 20 projected attributes per index and 100 in total", () => {
  expect(withIndexes(many(20))).toEqual([]);
  expect(withIndexes(many(21))).toEqual([
    "table files: table-indexes: it has 21 indexes, and DynamoDB allows a table 20",
  ]);
  expect(withIndex({ partitionKey: "owner", project: named(20, "a") })).toEqual([]);
  expect(withIndex({ partitionKey: "owner", project: named(21, "a") })).toEqual([
    "table files index byOwner: index-project: `project` has 21 attributes, and DynamoDB allows an index 20",
  ]);
  expect(withIndexes(many(5, { project: named(20, "a") }))).toEqual([]);
  expect(
    withIndexes({
      ...many(5, { project: named(20, "a") }),
      more: { partitionKey: "m", project: ["a0"] },
    }),
  ).toEqual([
    "table files: table-indexes: it has 101 attributes in the `project` of its indexes, and DynamoDB allows a table 100",
  ]);
});

test("unknown options of an index are reported with its name", () => {
  expect(withIndex({ partitionKey: "owner", projekt: ["size"] })).toEqual([
    'table files index byOwner: unknown-option: unknown option "projekt"',
  ]);
});

test("a table with the same attribute for both keys is refused", () => {
  expect(problemsOf({ partitionKey: "pk", sortKey: "pk", tenant: false })).toEqual([
    "table files: table-keys: `partitionKey` and `sortKey` are not two attribute names",
  ]);
});

test.each<[unknown, string]>([
  [undefined, "is missing"],
  ["yes", 'is "yes"'],
  [null, "is null"],
  [0, "is 0"],
])("a table says whether its rows belong to tenants: %j does not", (tenant, wrong) => {
  expect(problemsOf({ partitionKey: "pk", tenant })).toEqual([
    `table files: table-tenant: \`tenant\` ${wrong}`,
  ]);
});

test.each([true, false])("a table may have `tenant: %j`", (tenant) => {
  expect(problemsOf({ partitionKey: "pk", tenant })).toEqual([]);
});
