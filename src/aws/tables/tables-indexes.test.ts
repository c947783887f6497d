import type { GlobalSecondaryIndexDescription, KeySchemaElement } from "@aws-sdk/client-dynamodb";
import { expect, test } from "vitest";
import type { IndexDeclaration } from "../../app/handlers/table.ts";
import { indexFault } from "./tables.ts";

const table = { partitionKey: "pk", sortKey: "sk" };
const byOwner: IndexDeclaration = {
  name: "byOwner",
  partitionKey: "owner",
  sortKey: "createdAt",
  project: undefined,
};
const KeySchema: KeySchemaElement[] = [
  { AttributeName: "owner", KeyType: "HASH" },
  { AttributeName: "createdAt", KeyType: "RANGE" },
];
const types = { owner: "S", createdAt: "S" } as const;

function faultOf(
  project: IndexDeclaration["project"],
  has: GlobalSecondaryIndexDescription,
  attributes: object = types,
) {
  return indexFault({ ...byOwner, project }, table, {
    GlobalSecondaryIndexes: [{ IndexName: "byOwner", KeySchema, IndexStatus: "ACTIVE", ...has }],
    AttributeDefinitions: Object.entries(attributes).map(([AttributeName, AttributeType]) => ({
      AttributeName,
      AttributeType,
    })),
  });
}

const including = (...NonKeyAttributes: string[]) => ({
  Projection: { ProjectionType: "INCLUDE" as const, NonKeyAttributes },
});
const all = { Projection: { ProjectionType: "ALL" as const } };
const keysOnly = { Projection: { ProjectionType: "KEYS_ONLY" as const } };

test.each<[string, IndexDeclaration["project"], GlobalSecondaryIndexDescription]>([
  ["all attributes", undefined, all],
  ["the keys alone", [], keysOnly],
  [
    "the declared attributes, in any order and with keys among them",
    ["a", "b"],
    including("b", "owner", "sk", "a"),
  ],
])("accepts an index with %s", (_, project, has) => {
  expect(faultOf(project, has)).toBeUndefined();
});

test.each<[IndexDeclaration["project"], GlobalSecondaryIndexDescription, string, string]>([
  [undefined, keysOnly, "projection", "it projects its keys alone, not all attributes"],
  [undefined, {}, "projection", "it projects its keys alone, not all attributes"],
  [undefined, including("a", "b"), "projection", "it projects a, b, not all attributes"],
  [["a", "b"], including("b"), "projection", "it does not project a"],
  [["a", "b"], keysOnly, "projection", "it does not project a, b"],
  [["a"], all, "extra", "it projects all attributes, more than is declared"],
  [[], including("a", "b"), "extra", "it projects a, b, more than is declared"],
  [
    ["a"],
    { ...all, IndexStatus: "CREATING" },
    "status",
    "it is CREATING, so it cannot be queried yet",
  ],
  [["a"], { ...keysOnly, IndexStatus: "CREATING" }, "projection", "it does not project a"],
])(
  "reports an index that should have %j beside the keys, and has %j",
  (project, has, kind, message) => {
    expect(faultOf(project, has)).toEqual({ kind, message });
  },
);

test("reports a missing index, and one with other key names or types", () => {
  const wanted = "not owner (S), createdAt (S)";
  expect(faultOf(undefined, all, { ...types, createdAt: "N" })?.message).toBe(
    `its keys are owner (S), createdAt (N), ${wanted}`,
  );
  expect(faultOf(undefined, { ...all, KeySchema: KeySchema.slice(0, 1) })?.message).toBe(
    `its keys are owner (S), ${wanted}`,
  );
  expect(faultOf(undefined, { ...all, KeySchema: undefined as never })).toEqual({
    kind: "keys",
    message: `its keys are , ${wanted}`,
  });
  expect(indexFault(byOwner, table, {})).toEqual({ kind: "missing", message: "it does not exist" });
});
