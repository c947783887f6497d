// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import {
  properties,
  quiet,
  sheds,
  spades,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { combined, extensionOf } from "./extension.ts";

const own = {
  AWSTemplateFormatVersion: "2010-09-09",
  Description: "The garden's own",
  Globals: {
    Function: {
      Environment: { Variables: { GARDEN_BUCKET: { Ref: "GardenBucket" }, GARDEN_SIZE: "9" } },
    },
  },
  Parameters: { GardenName: { Type: "String" } },
  Conditions: { IsNamed: { "Fn::Not": [{ "Fn::Equals": [{ Ref: "GardenName" }, ""] }] } },
  Resources: {
    GardenBucket: { Type: "AWS::S3::Bucket" },
    GardenPolicy: {
      Type: "AWS::IAM::Policy",
      Properties: {
        PolicyName: "garden",
        Roles: [{ Ref: "HttpRole" }],
        PolicyDocument: {
          Version: "2012-10-17",
          Statement: [
            {
              Effect: "Allow",
              Action: "s3:GetObject",
              Resource: { "Fn::Sub": "${GardenBucket.Arn}/*" },
            },
          ],
        },
      },
    },
  },
  Outputs: { GardenBucketName: { Value: { Ref: "GardenBucket" } } },
};
const added = (read: unknown, options: Parameters<typeof templateOf>[1] = {}) =>
  templateOf([spades, sheds], { ...options, extension: extensionOf(read) });
const variables = (template: ReturnType<typeof added>, id: string) =>
  (properties(template, id)["Environment"] as { readonly Variables: object }).Variables; // safe: each function has one

describe("the application's own template", () => {
  test("is added to the generated template, and may refer to its resources", () => {
    const [plain, template] = [templateOf([spades, sheds]), added(own)];
    expect(template).toMatchObject({
      Description: plain.Description,
      Parameters: { GardenName: own.Parameters.GardenName },
      Conditions: { IsNamed: own.Conditions.IsNamed },
      Resources: {
        GardenBucket: own.Resources.GardenBucket,
        GardenPolicy: own.Resources.GardenPolicy,
      },
      Outputs: { GardenBucketName: own.Outputs.GardenBucketName },
    });
    expect(Object.keys(template.Resources)).toEqual([
      ...Object.keys(plain.Resources),
      "GardenBucket",
      "GardenPolicy",
    ]);
    expect(template).not.toHaveProperty("Globals");
  });

  test("sets its variables in every function", () => {
    const template = added(own, { shape: "each" });
    const functions = Object.keys(template.Resources).filter((id) => id.endsWith("LambdaFunction"));
    expect(functions).toHaveLength(7);
    for (const id of functions) {
      expect(variables(template, id), id).toMatchObject({
        NODE_ENV: "production",
        GARDEN_BUCKET: { Ref: "GardenBucket" },
        GARDEN_SIZE: "9",
      });
    }
  });

  test("may be empty, and works with the data part alone", () => {
    expect(templateOf([quiet], { extension: extensionOf({}) })).toEqual(templateOf([quiet]));
    const { Resources, Globals, ...others } = own;
    const { GardenBucket } = Resources;
    const template = added({ ...others, Globals, Resources: { GardenBucket } }, { part: "data" });
    expect(Object.keys(template.Resources).at(-1)).toBe("GardenBucket");
  });

  test.each<[unknown, string]>([
    [
      { Resources: { HttpRole: { Type: "AWS::IAM::Role" } } },
      "Resources.HttpRole is keelson's own; choose another name",
    ],
    [
      { Parameters: { CodeKey: { Type: "String" } } },
      "Parameters.CodeKey is keelson's own; choose another name",
    ],
    [{ Conditions: { HasCustomerKey: {} } }, "Conditions.HasCustomerKey is keelson's own"],
    [{ Outputs: { HttpApiUrl: {} } }, "Outputs.HttpApiUrl is keelson's own"],
    [
      { Resources: { Mine: { Type: "T", Properties: { A: { Ref: "Yours" } } } } },
      "Mine refers to Yours, which is not there",
    ],
    [
      { Globals: { Function: { Environment: { Variables: { A: { Ref: "Gone" } } } } } },
      "HttpLambdaFunction refers to Gone; ",
    ],
    [
      { Globals: { Function: { Environment: { Variables: { NODE_ENV: "test" } } } } },
      "the variable NODE_ENV is set by keelson",
    ],
    [
      { Globals: { Function: { Environment: { Variables: { KEELSON_AUTH_SECRET: "s" } } } } },
      "the variable KEELSON_AUTH_SECRET is set by keelson",
    ],
  ])("fails and names the conflict: %j", (read, message) => {
    expect(() => added(read)).toThrow(message);
  });

  test.each<[unknown, string]>([
    [[], "it is [], not an object"],
    [null, "it is null, not an object"],
    [
      { Transform: "AWS::Serverless-2016-10-31" },
      'it has "Transform"; known are AWSTemplateFormatVersion, Description, ',
    ],
    [{ Resources: [] }, "Resources is [], not an object"],
    [{ Resources: { A: "bucket" } }, 'Resources.A is "bucket", not an object'],
    [{ Resources: { A: {} } }, "Resources.A has no Type"],
    [{ Parameters: { A: {} } }, "Parameters.A has no Type"],
    [{ Globals: 1 }, "Globals is 1, not an object"],
    [
      { Globals: { Api: {} } },
      "Globals.Api is not taken; of Globals only Function.Environment.Variables is",
    ],
    [{ Globals: { Function: { Timeout: 3 } } }, "Globals.Function.Timeout is not taken"],
    [
      { Globals: { Function: { Environment: { Variables: "A=1" } } } },
      'Globals.Function.Environment.Variables is "A=1", not',
    ],
  ])("is refused if it is invalid: %j", (read, message) => {
    expect(() => extensionOf(read)).toThrow(message);
  });

  test("sets no variables if its globals have none", () => {
    for (const Globals of [{}, { Function: {} }, { Function: { Environment: {} } }]) {
      expect(extensionOf({ Globals }).variables).toEqual({});
    }
  });
});

const told = (name: string) => ({ Function: { Environment: { Variables: { [name]: name } } } });
const topic = { Type: "AWS::SNS::Topic" };

test("several extensions are merged, and no extension gives an empty one", () => {
  const both = combined([
    extensionOf({ Resources: { Hat: topic }, Globals: told("HAT") }),
    extensionOf({
      Resources: { Coat: topic },
      Parameters: { Size: { Type: "String" } },
      Globals: told("COAT"),
    }),
  ]);
  expect(both.part).toEqual({
    Resources: { Hat: topic, Coat: topic },
    Parameters: { Size: { Type: "String" } },
    Conditions: {},
    Outputs: {},
  });
  expect(both.variables).toEqual({ HAT: "HAT", COAT: "COAT" });
  expect(combined([]).variables).toEqual({});
});

test("refuses a name that occurs in two extensions", () => {
  const hat = extensionOf({ Resources: { Hat: topic } });
  expect(() => combined([hat, hat])).toThrow("Resources.Hat is in two files; keep it in one");
  const variable = extensionOf({ Globals: told("HAT") });
  expect(() => combined([variable, variable])).toThrow(
    "Variables.HAT is in two files; keep it in one",
  );
});
