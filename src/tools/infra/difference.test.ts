import { describe, expect, test } from "vitest";
import {
  everyone,
  templateOf as serverTemplateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
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

describe("the difference between two templates", () => {
  test("is empty if they are equal in a different order", () => {
    const [a, b] = [table(), queue({ VisibilityTimeout: 30, FifoQueue: true })];
    expect(
      between(
        template({ A: a, B: b }),
        template({ B: queue({ FifoQueue: true, VisibilityTimeout: 30 }), A: a }),
      ),
    ).toEqual([]);
  });

  test("names each resource that is added, removed or changed, with the changed properties", () => {
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

  test("names changed parameters, conditions and outputs", () => {
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

  test("resolves parameters, so that a template written by another tool can be compared", () => {
    const written = { Resources: { CupsTable: table({ TableName: "app-dev-cups" }) } };
    expect(between(written, template({ CupsTable: table() }))).toEqual([
      "added: parameter NamePrefix",
    ]);
  });
});

describe("a table is in danger", () => {
  test("if it is deleted or leaves the stack", () => {
    expect(between(template({ CupsTable: table(), Q: queue() }), template({}))).toEqual([
      "! the table app-dev-cups is deleted with all its items: CupsTable (AWS::DynamoDB::Table)",
      "removed: Q (AWS::SQS::Queue)",
    ]);
    expect(
      between(template({ CupsTable: table({}, { DeletionPolicy: "Retain" }) }), template({})),
    ).toEqual([
      "! the table app-dev-cups is removed: CupsTable (AWS::DynamoDB::Table) leaves the stack and stays in the account, outside of any stack",
    ]);
    expect(
      between(
        template({ T: { Type: "AWS::DynamoDB::Table", Properties: {} } }),
        template({ T: queue() }),
      ),
    ).toEqual([
      "! the table without its own name is deleted with all its items: T (AWS::DynamoDB::Table)",
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
  ])("if it is replaced by an empty one: %s", (property, properties) => {
    expect(ofTables(table(), table(properties))).toEqual([
      `! the table app-dev-cups is replaced by an empty one: CupsTable (AWS::DynamoDB::Table) changes ${property}`,
      `changed: CupsTable (AWS::DynamoDB::Table): ${property}`,
    ]);
  });

  test("if a parameter's new default changes its name", () => {
    const [before, after] = [
      template({ CupsTable: table() }),
      template({ CupsTable: table() }, "app-prod"),
    ];
    expect(between(before, after)[0]).toBe(
      "! the table app-dev-cups is replaced by an empty one: CupsTable (AWS::DynamoDB::Table) changes TableName",
    );
  });

  test("if two of its indexes change at once, which DynamoDB refuses", () => {
    const at = (...names: string[]) =>
      table({ GlobalSecondaryIndexes: names.map((name) => index(name)) });
    const refused = (count: number, names: string) =>
      `! CupsTable (AWS::DynamoDB::Table) changes ${count} indexes, and DynamoDB accepts one per update: deploy them one after the other: ${names}`;
    expect(ofTables(at(), at("a", "b"))[0]).toBe(refused(2, "+a, +b"));
    expect(ofTables(at("a", "c"), at("b", "c"))[0]).toBe(refused(2, "-a, +b"));
    const other = table({ GlobalSecondaryIndexes: [index("a", "another")] });
    expect(ofTables(at("a"), other)[0]).toBe(refused(2, "-a, +a"));
    expect(
      ofTables(at("a"), table({ GlobalSecondaryIndexes: [index("a", "a", "KEYS_ONLY")] }))[0],
    ).toBe(refused(2, "-a, +a"));
  });
});

test("resolves a parameter's default, on its own and inside a text", () => {
  const at = (value: unknown) => template({ Q: queue({ QueueName: value }) });
  expect(between(at({ Ref: "NamePrefix" }), at({ "Fn::Sub": namePrefix }))).toEqual([]);
  expect(between(at({ Ref: "NamePrefix" }), at("app-dev"))).toEqual([]);
});

test("compares references that are not parameters as written", () => {
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
  test("if its previous index definition is invalid", () => {
    expect(ofTables(table({ GlobalSecondaryIndexes: [null] }), table())).toEqual([
      "changed: CupsTable (AWS::DynamoDB::Table): GlobalSecondaryIndexes",
    ]);
  });

  test("if one index is added or removed with its attributes", () => {
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

  test("if its deletion policy or protection changes, which is listed", () => {
    const kept = table({ DeletionProtectionEnabled: true }, { DeletionPolicy: "Retain" });
    expect(ofTables(table(), kept)).toEqual([
      "changed: CupsTable (AWS::DynamoDB::Table): DeletionProtectionEnabled, DeletionPolicy",
    ]);
  });
});

describe("a REST API whose paths have their own functions", () => {
  const restOf = (...routes: readonly string[]) =>
    serverTemplateOf(
      [
        defineFeature("files", (r) => {
          for (const [index, path] of routes.entries())
            r.query(`file.show${index}`, { route: `GET ${path}`, ...everyone });
        }),
      ],
      { front: "rest", shape: "each" },
    );
  const dangersOf = (before: ComparedTemplate, after: Template) =>
    between(before, after).filter((text) => text.startsWith("! "));

  test.each<[string, readonly string[], readonly string[], string]>([
    [
      "appears",
      ["/files"],
      ["/files", "/files/:id"],
      "RestApiResourceFilesP2Var adds {p2} while RestApiResourceFilesProxyVar is {proxy+}",
    ],
    [
      "disappears",
      ["/files", "/files/:id"],
      ["/files"],
      "RestApiResourceFilesProxyVar adds {proxy+} while RestApiResourceFilesP2Var is {p2}",
    ],
    [
      "appears below the root",
      ["/files"],
      ["/files", "/:id"],
      "RestApiResourceP1Var adds {p1} while RestApiResourceProxyVar is {proxy+}",
    ],
  ])(
    "cannot be deployed if a parameter %s where API Gateway allows one variable segment",
    (_, before, after, text) => {
      expect(dangersOf(restOf(...before), restOf(...after))).toEqual([
        `! the REST API cannot be deployed: ${text} below the same path; deploy twice, as docs/fronts.md shows`,
      ]);
    },
  );

  test("can be deployed with other changes of paths, and if the old segment was removed before", () => {
    expect(dangersOf(restOf("/files"), restOf("/files", "/notes/:id"))).toEqual([]);
    expect(dangersOf(restOf("/files/:id"), restOf("/files/:id/rows", "/files/:key"))).toEqual([]);
    const whole = restOf("/files");
    const { RestApiResourceFilesProxyVar: _, ...Resources } = whole.Resources;
    expect(dangersOf({ ...whole, Resources }, restOf("/files", "/files/:id"))).toEqual([]);
  });
});
