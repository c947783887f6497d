import { describe, expect, test } from "vitest";
import { type ComparedTemplate, differences } from "./difference.ts";
import { namePrefix } from "./parameters.ts";
import { type Resource, type Template, templateOf } from "./template.ts";

const keys = (...names: string[]) =>
  names.map((AttributeName, index) => ({ AttributeName, KeyType: index === 0 ? "HASH" : "RANGE" }));
const index = (IndexName: string, key = IndexName, ProjectionType = "ALL") => ({
  IndexName,
  KeySchema: keys(key),
  Projection: { ProjectionType },
});
const table = (
  properties: Resource["Properties"] = {},
  others: Partial<Resource> = {},
): Resource => ({
  Type: "AWS::DynamoDB::Table",
  Properties: {
    TableName: { "Fn::Sub": `${namePrefix}-cups` },
    AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "S" }],
    KeySchema: keys("pk"),
    ...properties,
  },
  ...others,
});
const queue = (properties: Resource["Properties"] = {}): Resource => ({
  Type: "AWS::SQS::Queue",
  Properties: properties,
});
const template = (Resources: Template["Resources"], prefix = "app-dev"): Template =>
  templateOf("", [
    { Parameters: { NamePrefix: { Type: "String", Default: prefix, Description: "" } }, Resources },
  ]);
const between = (before: ComparedTemplate, after: Template) =>
  differences(before, after).map(({ text, isDangerous }) => (isDangerous ? `! ${text}` : text));
const ofTables = (before: Resource, after: Resource) =>
  between(template({ CupsTable: before }), template({ CupsTable: after }));

describe("between two templates", () => {
  test("that are alike nothing changes, in whatever order they name things", () => {
    const [a, b] = [table(), queue({ VisibilityTimeout: 30, FifoQueue: true })];
    expect(
      between(
        template({ A: a, B: b }),
        template({ B: queue({ FifoQueue: true, VisibilityTimeout: 30 }), A: a }),
      ),
    ).toEqual([]);
  });

  test("each resource that comes, goes or changes is named with what changes", () => {
    const before = template({
      Gone: queue(),
      Other: queue({ VisibilityTimeout: 30, DelaySeconds: 1 }),
      Turned: queue(),
    });
    const after = template({
      Other: queue({ VisibilityTimeout: 60 }),
      Turned: { Type: "AWS::Events::EventBus", Properties: {} },
      New: table(),
    });
    expect(between(before, after)).toEqual([
      "removed: Gone (AWS::SQS::Queue)",
      "changed: Other (AWS::SQS::Queue): VisibilityTimeout, DelaySeconds",
      "removed: Turned (AWS::SQS::Queue)",
      "added: Turned (AWS::Events::EventBus)",
      "added: New (AWS::DynamoDB::Table)",
    ]);
  });

  test("parameters, conditions and outputs that change are named", () => {
    const output = (Value: string) => ({ Description: "", Value });
    const before: ComparedTemplate = {
      Resources: {},
      Outputs: { A: output("1"), B: output("1"), C: output("1") },
    };
    const after = templateOf("", [
      {
        Conditions: { Is: { "Fn::Equals": ["a", "a"] } },
        Outputs: { A: output("2"), C: output("1") },
      },
    ]);
    expect(between(before, after)).toEqual([
      "added: condition Is",
      "changed: output A",
      "removed: output B",
    ]);
  });

  test("a template that another tool has written is compared, by the names that come of the parameters", () => {
    const written = { Resources: { CupsTable: table({ TableName: "app-dev-cups" }) } };
    expect(between(written, template({ CupsTable: table() }))).toEqual([
      "added: parameter NamePrefix",
    ]);
  });
});

describe("a table is in danger", () => {
  test("where it is deleted, or leaves the stack", () => {
    expect(between(template({ CupsTable: table(), Q: queue() }), template({}))).toEqual([
      "! the table app-dev-cups is deleted with all its items: CupsTable (AWS::DynamoDB::Table)",
      "removed: Q (AWS::SQS::Queue)",
    ]);
    expect(
      between(template({ CupsTable: table({}, { DeletionPolicy: "Retain" }) }), template({})),
    ).toEqual([
      "! the table app-dev-cups is removed: CupsTable (AWS::DynamoDB::Table) leaves the stack and stays in the account, where nothing looks after it",
    ]);
    expect(
      between(
        template({ T: { Type: "AWS::DynamoDB::Table", Properties: {} } }),
        template({ T: queue() }),
      ),
    ).toEqual([
      "! the table without a name of its own is deleted with all its items: T (AWS::DynamoDB::Table)",
      "added: T (AWS::SQS::Queue)",
    ]);
  });

  test.each<[string, Resource["Properties"]]>([
    ["KeySchema", { KeySchema: keys("pk", "sk") }],
    ["TableName", { TableName: "mugs" }],
    [
      "AttributeDefinitions",
      { AttributeDefinitions: [{ AttributeName: "pk", AttributeType: "N" }] },
    ],
    ["LocalSecondaryIndexes", { LocalSecondaryIndexes: [index("byAge")] }],
  ])("where another takes its place: %s", (property, properties) => {
    expect(ofTables(table(), table(properties))).toEqual([
      `! the table app-dev-cups is replaced by an empty one: CupsTable (AWS::DynamoDB::Table) changes ${property}`,
      `changed: CupsTable (AWS::DynamoDB::Table): ${property}`,
    ]);
  });

  test("where the default of a parameter gives it another name", () => {
    const [before, after] = [
      template({ CupsTable: table() }),
      template({ CupsTable: table() }, "app-prod"),
    ];
    expect(between(before, after)[0]).toBe(
      "! the table app-dev-cups is replaced by an empty one: CupsTable (AWS::DynamoDB::Table) changes TableName",
    );
  });

  test("where two of its indexes change at once, which DynamoDB refuses half way", () => {
    const at = (...names: string[]) =>
      table({ GlobalSecondaryIndexes: names.map((name) => index(name)) });
    const refused = (count: number, names: string) =>
      `! CupsTable (AWS::DynamoDB::Table) changes ${count} indexes at once, and DynamoDB takes one: deploy them one after the other: ${names}`;
    expect(ofTables(at(), at("a", "b"))[0]).toBe(refused(2, "+a, +b"));
    expect(ofTables(at("a", "c"), at("b", "c"))[0]).toBe(refused(2, "-a, +b"));
    const other = table({ GlobalSecondaryIndexes: [index("a", "another")] });
    expect(ofTables(at("a"), other)[0]).toBe(refused(2, "-a, +a"));
    expect(
      ofTables(at("a"), table({ GlobalSecondaryIndexes: [index("a", "a", "KEYS_ONLY")] }))[0],
    ).toBe(refused(2, "-a, +a"));
  });
});

test("a parameter's default stands for it, whether it is taken whole or within a text", () => {
  const at = (value: unknown) => template({ Q: queue({ QueueName: value }) });
  expect(between(at({ Ref: "NamePrefix" }), at({ "Fn::Sub": namePrefix }))).toEqual([]);
  expect(between(at({ Ref: "NamePrefix" }), at("app-dev"))).toEqual([]);
});

test("what no parameter names is compared as it stands", () => {
  const arn = (...names: string[]) =>
    queue({
      Policy: { "Fn::Sub": names.map((name) => `\${${name}}`).join("-") },
      Other: { Ref: "Q" },
      None: null,
    });
  const before = template({ Q: arn("AWS::Region", "!NamePrefix") });
  expect(between(before, template({ Q: arn("AWS::Region", "!NamePrefix") }))).toEqual([]);
  expect(between(before, template({ Q: arn("AWS::Region") }))).toEqual([
    "changed: Q (AWS::SQS::Queue): Policy",
  ]);
});

describe("a table is not in danger", () => {
  test("where what was written of its indexes is none of CloudFormation's", () => {
    expect(ofTables(table({ GlobalSecondaryIndexes: [null] }), table())).toEqual([
      "changed: CupsTable (AWS::DynamoDB::Table): GlobalSecondaryIndexes",
    ]);
  });

  test("where one index comes or goes, with the attributes that it needs", () => {
    const one = table({
      AttributeDefinitions: [
        { AttributeName: "pk", AttributeType: "S" },
        { AttributeName: "a", AttributeType: "S" },
      ],
      GlobalSecondaryIndexes: [index("a")],
    });
    const changed =
      "changed: CupsTable (AWS::DynamoDB::Table): AttributeDefinitions, GlobalSecondaryIndexes";
    expect(ofTables(table(), one)).toEqual([changed]);
    expect(ofTables(one, table())).toEqual([changed]);
  });

  test("where it is kept or protected otherwise, which is named", () => {
    const kept = table({ DeletionProtectionEnabled: true }, { DeletionPolicy: "Retain" });
    expect(ofTables(table(), kept)).toEqual([
      "changed: CupsTable (AWS::DynamoDB::Table): DeletionProtectionEnabled, DeletionPolicy",
    ]);
  });
});
