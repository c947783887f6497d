// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import { templateOf as serverTemplateOf } from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import { sizeReport } from "./limits.ts";
import { type Template, type TemplatePart, templateOf, templateText } from "./template.ts";

function templateWith(resources: number, descriptionBytes = 0): Template {
  const Resources = Object.fromEntries(
    Array.from({ length: resources }, (_, index) => [`T${index}`, { Type: "T", Properties: {} }]),
  );
  return templateOf("x".repeat(descriptionBytes), [{ Resources }]);
}
const report = (template: Template) => sizeReport(template, templateText(template));

test("a template within CloudFormation's limits has nothing to report", () => {
  expect(report(templateWith(500))).toEqual({ problems: [], notes: [] });
});

test("more than 500 resources are a problem", () => {
  expect(report(templateWith(501))).toEqual({
    problems: ["it has 501 resources, and CloudFormation takes 500"],
    notes: [],
  });
});

test("more than 60 dynamic references are a problem", () => {
  const withSecrets = (count: number) => {
    const Variables = { SECRET: "{{resolve:secretsmanager:one}}" };
    const Properties = { Environment: { Variables } };
    const functions = Array.from({ length: count }, (_, index) => [
      `F${index}`,
      { Type: "T", Properties },
    ]);
    return report(templateOf("", [{ Resources: Object.fromEntries(functions) }])).problems;
  };
  expect(withSecrets(60)).toEqual([]);
  expect(withSecrets(61)).toEqual(["it has 61 dynamic references, and CloudFormation takes 60"]);
});

test("a template too long for a direct call is deployed from a bucket, up to a million bytes", () => {
  const { problems, notes } = report(templateWith(1, 51_200));
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    expect.stringMatching(
      /^it has 51\d{3} bytes; above 51200 it is deployed from a bucket: .*--s3-bucket$/,
    ),
  ]);
  expect(report(templateWith(1, 1_000_000)).problems).toEqual([
    expect.stringMatching(/^it has \d+ bytes, and CloudFormation takes 1000000$/),
  ]);
});

test("reports a role whose policies exceed IAM's limit", () => {
  const role = (tables: number, indexes = 0): Template => {
    const Resource = [
      ...Array.from({ length: tables }, (_, index) => ({ "Fn::GetAtt": [`Table${index}`, "Arn"] })),
      ...Array.from({ length: indexes }, (_, index) => ({
        "Fn::Sub": `\${Table${index}.Arn}/index/byOwner`,
      })),
    ];
    const Policies = [
      { PolicyDocument: { Statement: [{ Action: ["dynamodb:Query"], Resource }, null] } },
    ];
    const NamePrefix = { Type: "String", Default: "keelson-dev", Description: "" } as const;
    return templateOf("a role", [
      {
        Parameters: { NamePrefix },
        Resources: { HttpRole: { Type: "AWS::IAM::Role", Properties: { Policies } } },
      },
    ]);
  };
  expect(report(role(100)).notes).toEqual([]);
  expect(report(role(150)).notes).toEqual([
    expect.stringMatching(
      /^HttpRole has policies of about 1\d{4} characters, and IAM takes 10240; with --shape each/,
    ),
  ]);
  expect(report(role(60, 100)).notes).toHaveLength(1);
});

describe("a function whose environment is over Lambda's 4 KB", () => {
  const tablesOf = (count: number) =>
    defineFeature("shelf", (r) => {
      for (let index = 0; index < count; index += 1)
        r.table(`a-long-name-of-table-${index}`, { partitionKey: "pk", tenant: false });
    });

  test.each(["all", "functions"] as const)(
    "is reported by name, with its approximate size: the part %s",
    (part) => {
      expect(
        report(serverTemplateOf([tablesOf(35)], { part })).notes.filter((note) =>
          note.includes("environment"),
        ),
      ).toEqual([]);
      const notes = report(serverTemplateOf([tablesOf(70)], { part })).notes.filter((note) =>
        note.includes("environment"),
      );
      expect(notes[0]).toMatch(
        /^HttpLambdaFunction has an environment of about [56]\d{3} bytes, and Lambda accepts 4096: a server has a variable for each table/,
      );
    },
  );

  const bytesOf = (Variables: unknown, more: TemplatePart = {}) => {
    const Properties = Variables === undefined ? {} : { Environment: { Variables } as never };
    const resources = { Http: { Type: "AWS::Lambda::Function", Properties } };
    const template = templateOf("one", [{ Resources: resources }, more]);
    return Number(/about (\d+) bytes/.exec(report(template).notes[0] ?? "")?.[1]);
  };

  test("is measured as Lambda does, as JSON in UTF-8", () => {
    expect(bytesOf(undefined)).toBeNaN();
    expect(bytesOf({ A: "x".repeat(4_096 - '{"A":""}'.length) })).toBeNaN();
    expect(bytesOf({ A: "x".repeat(4_097 - '{"A":""}'.length) })).toBe(4_097);
    expect(bytesOf({ A: "ö".repeat(2_048) })).toBe(4_096 + '{"A":""}'.length);
    expect(bytesOf({ A: 5, B: "x".repeat(5_000) })).toBe(5_000 + '{"A":"5","B":""}'.length);
  });

  test("is measured with the values that CloudFormation substitutes", () => {
    const filler = "x".repeat(5_000);
    const base = bytesOf({ A: filler, B: "" });
    const added = (value: unknown, more?: TemplatePart) =>
      bytesOf({ A: filler, B: value }, more) - base;
    const Parameters = {
      P: { Type: "String", Default: "default", Description: "" },
      Q: { Type: "String", Description: "" },
      S: { Type: "AWS::SSM::Parameter::Value<String>", Default: "/name/of/it", Description: "" },
      N: { Type: "AWS::SSM::Parameter::Name", Default: "/name", Description: "" },
    } as const;
    const Resources = {
      T: { Type: "AWS::DynamoDB::Table", Properties: { TableName: { "Fn::Sub": "${P}-t" } } },
      J: { Type: "AWS::SQS::Queue", Properties: { QueueName: "j.fifo" } },
      E: { Type: "AWS::Events::EventBus", Properties: { Name: "bus" } },
      B: { Type: "AWS::S3::Bucket" },
      R: { Type: "AWS::IAM::Role" },
      L: { Type: "AWS::Lambda::Function" },
      C: { Type: "AWS::S3::Bucket", Properties: { Name: { Ref: "C" } } },
    };
    const more = { Parameters, Resources } as unknown as TemplatePart; // safe: as templates have them
    expect(added({ Ref: "P" }, more)).toBe("default".length);
    expect(added({ Ref: "N" }, more)).toBe("/name".length);
    expect([
      added({ Ref: "Q" }, more),
      added({ Ref: "S" }, more),
      added({ Ref: "B" }, more),
      added({ Ref: "C" }, more),
      added({ "Fn::Odd": 1 }),
    ]).toEqual([48, 48, 48, 48, 48]);
    expect(added({ Ref: "T" }, more)).toBe("default-t".length);
    expect(added({ Ref: "E" }, more)).toBe("bus".length);
    expect(added({ Ref: "J" }, more)).toBe(
      "https://sqs.ap-southeast-1.amazonaws.com/123456789012/j.fifo".length,
    );
    expect(added({ "Fn::GetAtt": ["T", "Arn"] }, more)).toBe(
      "arn:aws:dynamodb:ap-southeast-1:123456789012:table/default-t".length,
    );
    expect(added({ "Fn::If": ["X", { Ref: "P" }, "no"] }, more)).toBe("default".length);
    expect(added({ "Fn::Join": ["-", ["a", { Ref: "P" }]] }, more)).toBe("a-default".length);
    expect(added({ "Fn::Join": ["-", { Ref: "P" }] }, more)).toBe("default".length);
    expect(added({ "Fn::Sub": "${AWS::Region}/${P}/${T}" }, more)).toBe(
      "ap-southeast-1/default/default-t".length,
    );
    expect(added({ "Fn::Sub": ["${Own}", { Own: { Ref: "P" } }] }, more)).toBe("default".length);
    expect(added({ "Fn::Sub": "{{resolve:secretsmanager:${P}}}" }, more)).toBe(48);
  });
});

test("merged parts keep all their members", () => {
  const parameter = { Type: "String", Description: "one" } as const;
  const template = templateOf("two parts", [
    { Parameters: { One: parameter }, Conditions: { Is: { "Fn::Equals": ["a", "a"] } } },
    { Parameters: { One: parameter }, Outputs: { Out: { Description: "it", Value: "v" } } },
  ]);
  expect(template).toEqual({
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "two parts",
    Parameters: { One: parameter },
    Conditions: { Is: { "Fn::Equals": ["a", "a"] } },
    Resources: {},
    Outputs: { Out: { Description: "it", Value: "v" } },
  });
});
