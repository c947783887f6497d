// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { expect, test } from "vitest";
import { danglingReferences } from "./extension.ts";
import type { Output, Resource, Template, Value } from "./template.ts";

const template = (parts: Partial<Template>): Template => ({
  AWSTemplateFormatVersion: "2010-09-09",
  Description: "",
  Parameters: { Stage: { Type: "String", Description: "" } },
  Conditions: { IsBig: true },
  Resources: {},
  Outputs: {},
  ...parts,
});
const resource = (members: Partial<Resource>): Resource => ({
  Type: "T",
  Properties: {},
  ...members,
});
const withProperty = (value: unknown) =>
  danglingReferences(template({ Resources: { A: resource({ Properties: { value } }) } }));

test.each<[unknown]>([
  [{ Ref: "Stage" }],
  [{ Ref: "AWS::Region" }],
  [{ "Fn::GetAtt": ["A", "Arn"] }],
  [{ "Fn::GetAtt": "A.Arn" }],
  [{ "Fn::Sub": "a-${Stage}-${A.Arn}-${AWS::Partition}-${!Nothing}-$context.path" }],
  [{ "Fn::Sub": ["${Local}", { Local: { Ref: "A" } }] }],
  [{ "Fn::If": ["IsBig", { Ref: "A" }, { Ref: "AWS::NoValue" }] }],
  [{ "Fn::Not": [{ Condition: "IsBig" }] }],
  [{ Condition: { Bool: { "aws:SecureTransport": "false" } } }],
  [[null, 1, "Ref", { Ref: "A", Other: "of no intrinsic function" }]],
])("an existing name is not a dangling reference: %j", (value) => {
  expect(withProperty(value)).toEqual([]);
});

test.each<[unknown, string[]]>([
  [{ Ref: "B" }, ["A refers to B"]],
  [
    { deep: [{ "Fn::GetAtt": ["B", "Arn"] }, { "Fn::GetAtt": "C.Arn" }] },
    ["A refers to B", "A refers to C"],
  ],
  [{ "Fn::Sub": "${B}-${C.Arn}-${B}" }, ["A refers to B", "A refers to C"]],
  [{ "Fn::Sub": ["${Local}-${B}", { Local: { Ref: "C" } }] }, ["A refers to B", "A refers to C"]],
  [{ "Fn::Sub": ["${B}", "no values"] }, ["A refers to B"]],
  [
    { "Fn::If": ["IsSmall", 1, { Ref: "B" }] },
    ["A refers to the condition IsSmall", "A refers to B"],
  ],
  [{ Condition: "IsSmall" }, ["A refers to the condition IsSmall"]],
])("each dangling reference is reported once: %j", (value, dangling) => {
  expect(withProperty(value)).toEqual(dangling);
});

test("checks the references of resources, conditions and outputs", () => {
  const output = (value: Value, more: Partial<Output> = {}): Output => ({
    Description: "",
    Value: value,
    ...more,
  });
  const dangling = danglingReferences(
    template({
      Conditions: { IsOdd: { "Fn::Equals": [{ Ref: "B" }, ""] } },
      Resources: {
        A: resource({ DependsOn: "C", Condition: "IsOdd" }),
        D: resource({ DependsOn: ["A", "E"], Condition: "IsEven" }),
      },
      Outputs: {
        Url: output({ Ref: "F" }, { Condition: "IsOld" }),
        Name: output({ Ref: "A" }, { Condition: "IsOdd" }),
      },
    }),
  );
  expect(dangling).toEqual([
    "condition IsOdd refers to B",
    "A refers to C",
    "D refers to the condition IsEven",
    "D refers to E",
    "output Url refers to the condition IsOld",
    "output Url refers to F",
  ]);
});
