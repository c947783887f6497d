import { expect, test } from "vitest";
import { sizeReport } from "./limits.ts";
import { type Template, templateOf, templateText } from "./template.ts";

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

test("a resource too many is a problem", () => {
  expect(report(templateWith(501))).toEqual({ problems: ["it has 501 resources, and CloudFormation takes 500"], notes: [] });
});

test("one that is too long for a call is deployed from a bucket, up to a million bytes", () => {
  const { problems, notes } = report(templateWith(1, 51_200));
  expect(problems).toEqual([]);
  expect(notes).toEqual([
    expect.stringMatching(/^it has 51\d{3} bytes; above 51200 it is deployed from a bucket: .*--s3-bucket$/),
  ]);
  expect(report(templateWith(1, 1_000_000)).problems).toEqual([
    expect.stringMatching(/^it has \d+ bytes, and CloudFormation takes 1000000$/),
  ]);
});

test("a role that allows more than IAM takes is told", () => {
  const role = (tables: number, indexes = 0): Template => {
    const Resource = [
      ...Array.from({ length: tables }, (_, index) => ({ "Fn::GetAtt": [`Table${index}`, "Arn"] })),
      ...Array.from({ length: indexes }, (_, index) => ({ "Fn::Sub": `\${Table${index}.Arn}/index/byOwner` })),
    ];
    const Policies = [{ PolicyDocument: { Statement: [{ Action: ["dynamodb:Query"], Resource }, null] } }];
    const NamePrefix = { Type: "String", Default: "keelson-dev", Description: "" } as const;
    return templateOf("a role", [
      { Parameters: { NamePrefix }, Resources: { HttpRole: { Type: "AWS::IAM::Role", Properties: { Policies } } } },
    ]);
  };
  expect(report(role(100)).notes).toEqual([]);
  expect(report(role(150)).notes).toEqual([
    expect.stringMatching(/^HttpRole has policies of about 1\d{4} characters, and IAM takes 10240; with --shape each/),
  ]);
  expect(report(role(60, 100)).notes).toHaveLength(1);
});

test("parts that are put together keep what each has", () => {
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
