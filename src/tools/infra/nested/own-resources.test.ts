// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import { everyone, properties } from "../../../../test/support/server-templates.ts";
import { defineFeature } from "../../../app/features/feature.ts";
import { buildServer, serverInternals } from "../../../app/server/server.ts";
import { serverTemplate } from "../server-template.ts";
import type { TemplatePart, Values } from "../template.ts";
import { flattened } from "./flattened.ts";
import { functionGroups } from "./groups.ts";
import { nestedTemplates } from "./nested-templates.ts";

describe("a product's own resources", () => {
  const features = ["part0", "part1"].map((name, number) =>
    defineFeature(name, (r) => {
      r.table(`rows${number}`, { partitionKey: "pk", sortKey: "sk", tenant: true });
      r.query("thing0.show", { route: `GET /${name}`, ...everyone });
    }),
  );
  const server = serverInternals(buildServer({ features, isolation: {} }));
  const setWith = (part: TemplatePart, variables: Values = {}) => {
    const extension = { part, variables };
    const template = serverTemplate(server, { stage: "dev", shape: "each", extension });
    return {
      template,
      ...nestedTemplates(template, functionGroups(server), ({ name }) => `all-dev.${name}.json`),
    };
  };
  const policy = (...Roles: string[]) => ({
    Type: "AWS::IAM::Policy",
    DependsOn: ["Bucket", ...Roles],
    Properties: { Roles: Roles.map((Ref) => ({ Ref })), Resource: { "Fn::GetAtt": "Bucket.Arn" } },
  });
  const bucket = { Type: "AWS::S3::Bucket", Condition: "HasBucket", Properties: {} };
  const HasBucket = { "Fn::Equals": [{ Ref: "AWS::Region" }, "eu-west-1"] };
  const attribute = (name: string) => ({ "Fn::GetAtt": ["Zone", name] });
  const [one, two] = ["Part0Thing0ShowRole", "Part1Thing0ShowRole"];

  test("go with the functions of one group, and take what is in the parent", () => {
    const { parent, children } = setWith({
      Conditions: { HasBucket },
      Resources: { Bucket: bucket, Policy: policy(one) },
    });
    const child = children.get("all-dev.part0.json")?.template;
    expect(child?.Resources["Policy"]).toEqual({
      Type: "AWS::IAM::Policy",
      DependsOn: [one],
      Properties: { Roles: [{ Ref: one }], Resource: { Ref: "BucketArn" } },
    });
    expect(parent.Resources["Part0Functions"]).toMatchObject({
      DependsOn: ["Bucket"],
      Properties: {
        Parameters: {
          BucketArn: { "Fn::If": ["HasBucket", { "Fn::GetAtt": ["Bucket", "Arn"] }, ""] },
        },
      },
    });
  });

  test("stay in the parent with functions of two groups, which return them, and where they hold data", () => {
    const { template, parent, children } = setWith({
      Conditions: { HasBucket },
      Resources: {
        Bucket: bucket,
        Policy: policy(one, two),
        Kept: { ...policy(one), DeletionPolicy: "Retain" },
      },
      Outputs: {
        Both: { Description: "", Value: { "Fn::Sub": `\${${one}.Arn} \${${two}} \${!Text}` } },
      },
    });
    expect(parent.Resources["Policy"]).toEqual({
      ...policy(one, two),
      DependsOn: ["Bucket", "Part0Functions", "Part1Functions"],
      Properties: {
        Roles: [
          { "Fn::GetAtt": ["Part0Functions", `Outputs.${one}`] },
          { "Fn::GetAtt": ["Part1Functions", `Outputs.${two}`] },
        ],
        Resource: { "Fn::GetAtt": ["Bucket", "Arn"] },
      },
    });
    expect(children.get("all-dev.part0.json")?.template.Outputs).toMatchObject({
      [one]: { Value: { Ref: one } },
      [`${one}Arn`]: { Value: { "Fn::GetAtt": [one, "Arn"] } },
    });
    expect(parent.Outputs["Both"]?.Value).toEqual({
      "Fn::Sub": `\${Part0Functions.Outputs.${one}Arn} \${Part1Functions.Outputs.${two}} \${!Text}`,
    });
    expect(Object.keys(parent.Resources)).toContain("Kept");
    const whole = flattened(parent, [...children.values()]).template;
    expect(whole.Resources["Policy"]?.Properties).toEqual({
      ...policy(one, two).Properties,
      Resource: { "Fn::GetAtt": ["Bucket", "Arn"] },
    });
    expect(Object.keys(whole.Outputs).sort()).toEqual(Object.keys(template.Outputs).sort());
  });

  test("with a condition are returned to other stacks only where they exist", () => {
    const Conditional = {
      Type: "AWS::IAM::ManagedPolicy",
      Condition: "HasBucket",
      Properties: { Roles: [{ Ref: one }] },
    };
    const ARN = { "Fn::If": ["HasBucket", { Ref: "Conditional" }, "none"] };
    const Attached = { Type: "AWS::IAM::Policy", Properties: { Resource: ARN } };
    const { parent, children } = setWith(
      { Conditions: { HasBucket }, Resources: { Conditional, Attached } },
      { ARN },
    );
    const [from, to] = ["part0", "part1"].map((n) => children.get(`all-dev.${n}.json`)?.template);
    expect(from?.Outputs["Conditional"]).toEqual({
      Description: "For other stacks",
      Condition: "HasBucket",
      Value: { Ref: "Conditional" },
    });
    expect(from?.Conditions).toMatchObject({ HasBucket });
    const returned = { "Fn::GetAtt": ["Part0Functions", "Outputs.Conditional"] };
    expect(properties(parent, "Part1Functions")["Parameters"]).toMatchObject({
      Conditional: { "Fn::If": ["HasBucket", returned, ""] },
    });
    expect(to?.Resources["Part1Thing0ShowLambdaFunction"]?.Properties).toMatchObject({
      Environment: { Variables: { ARN } },
    });
  });

  test("take a parameter's value as text, however the parent's parameter is declared", () => {
    const Parameters = {
      DbUrl: {
        Type: "AWS::SSM::Parameter::Value<String>",
        Default: "/db/url",
        AllowedPattern: "/.+",
        Description: "Where the URL is",
        NoEcho: true,
      },
      Zones: { Type: "AWS::SSM::Parameter::Value<List<String>>" },
      Subnets: { Type: "List<AWS::EC2::Subnet::Id>" },
      Tags: { Type: "CommaDelimitedList", Default: "a,b", AllowedValues: ["a", "b"] },
      Secret: { Type: "String", NoEcho: true, MinLength: 8 },
      Size: { Type: "Number", Default: 3, MaxValue: 9 },
    };
    const lists = ["Zones", "Subnets", "Tags"];
    const texts = ["DbUrl", "Secret", "Size"];
    const joined = (Ref: string) => ({ "Fn::Join": [",", { Ref }] });
    const { template, parent, children } = setWith(
      { Parameters },
      {
        ...Object.fromEntries(texts.map((Ref) => [Ref, { Ref }])),
        ...Object.fromEntries(lists.map((name) => [name, joined(name)])),
      },
    );
    expect(parent.Parameters).toMatchObject(Parameters);
    expect(properties(parent, "Part0Functions")["Parameters"]).toMatchObject({
      ...Object.fromEntries(texts.map((Ref) => [Ref, { Ref }])),
      ...Object.fromEntries(lists.map((name) => [name, joined(name)])),
    });
    const taken = children.get("all-dev.part0.json")?.template.Parameters;
    const { Subnets, Tags, Secret, Size } = Parameters;
    expect(taken).toMatchObject({ Subnets, Tags, Secret, Size });
    expect(taken?.["DbUrl"]).toEqual({
      Type: "String",
      Description: "Where the URL is",
      NoEcho: true,
    });
    expect(taken?.["Zones"]).toEqual({ Type: "CommaDelimitedList" });
    const id = "Part0Thing0ShowLambdaFunction";
    const whole = flattened(parent, [...children.values()]).template;
    expect(properties(whole, id)).toEqual(properties(template, id));
  });

  test("know the whole stack by its name and ID, which those of a nested stack are not", () => {
    const variables = {
      STACK: { Ref: "AWS::StackName" },
      ID: { "Fn::Sub": "${AWS::StackId}/${AWS::Region}" },
    };
    const { template, parent, children } = setWith({}, variables);
    expect(properties(parent, "Part0Functions")["Parameters"]).toMatchObject({
      AWSStackName: { Ref: "AWS::StackName" },
      AWSStackId: { Ref: "AWS::StackId" },
    });
    const child = children.get("all-dev.part0.json")?.template;
    const id = "Part0Thing0ShowLambdaFunction";
    expect(child?.Parameters["AWSStackName"]?.Type).toBe("String");
    expect(child?.Resources[id]?.Properties?.["Environment"]).toMatchObject({
      Variables: {
        STACK: { Ref: "AWSStackName" },
        ID: { "Fn::Sub": "${AWSStackId}/${AWS::Region}" },
      },
    });
    const whole = flattened(parent, [...children.values()]).template;
    expect(properties(whole, id)).toEqual(properties(template, id));
  });

  test("have their outputs in the parent, which is the stack that is deployed", () => {
    const Name = { Description: "The role", Value: { Ref: one }, Export: { Name: "role" } };
    const { template, parent, children } = setWith({ Outputs: { Name } });
    const Value = { "Fn::GetAtt": ["Part0Functions", `Outputs.${one}`] };
    expect(parent.Outputs["Name"]).toEqual({ ...Name, Value });
    const child = children.get("all-dev.part0.json")?.template;
    expect(child?.Outputs).not.toHaveProperty("Name");
    expect(child?.Outputs).toHaveProperty(`${one}Name`);
    const whole = flattened(parent, [...children.values()]).template;
    expect(whole.Outputs["Name"]).toEqual(template.Outputs["Name"]);
  });

  test("pass lists to other stacks as strings, and take them as lists", () => {
    const Zone = { Type: "AWS::Route53::HostedZone", Condition: "HasBucket", Properties: {} };
    const Custom = {
      Type: "Custom::Names",
      Properties: { ServiceToken: "arn", Role: { Ref: one } },
    };
    const names = { "Fn::GetAtt": ["Custom", "Names"] };
    const first = { "Fn::Select": ["0", { "Fn::If": ["HasBucket", names, ["none"]] }] };
    const variables = {
      SERVERS: { "Fn::If": ["HasBucket", { "Fn::Join": [" ", attribute("NameServers")] }, ""] },
      NAME: first,
    };
    const Both = {
      Type: "AWS::SNS::Topic",
      Properties: { DisplayName: first, Names: names, Role: { Ref: two } },
    };
    const { template, parent, children } = setWith(
      { Conditions: { HasBucket }, Resources: { Zone, Custom, Both } },
      variables,
    );
    const [from, to] = ["part0", "part1"].map((n) => children.get(`all-dev.${n}.json`)?.template);
    const returned = { "Fn::GetAtt": ["Part0Functions", "Outputs.CustomNames"] };
    const split = { "Fn::Split": [",", returned] };
    expect(from?.Outputs["CustomNames"]?.Value).toEqual({ "Fn::Join": [",", names] });
    expect(parent.Resources["Both"]?.Properties?.["DisplayName"]).toEqual({
      "Fn::Select": ["0", { "Fn::If": ["HasBucket", split, ["none"]] }],
    });
    expect(properties(parent, "Part1Functions")["Parameters"]).toMatchObject({
      CustomNames: { "Fn::Join": [",", split] },
      ZoneNameServers: {
        "Fn::If": ["HasBucket", { "Fn::Join": [",", attribute("NameServers")] }, ""],
      },
    });
    expect(to?.Parameters).toMatchObject({
      CustomNames: { Type: "CommaDelimitedList" },
      ZoneNameServers: { Type: "CommaDelimitedList" },
    });
    const id = "Part1Thing0ShowLambdaFunction";
    const whole = flattened(parent, [...children.values()]).template;
    expect(properties(whole, id)).toEqual(properties(template, id));
  });

  test("may need one another in a circle, which is left to CloudFormation to refuse", () => {
    const group = (Ref: string) => ({
      Type: "AWS::EC2::SecurityGroup",
      Properties: { Peer: { Ref } },
    });
    const { parent } = setWith({ Resources: { One: group("Two"), Two: group("One") } });
    expect(Object.keys(parent.Resources)).toEqual(expect.arrayContaining(["One", "Two"]));
  });

  test("that stacks need and that need these stacks are refused, which one template can have", () => {
    const key = (...roles: string[]) => ({
      Type: "AWS::KMS::Key",
      Properties: { KeyPolicy: roles.map((role) => ({ "Fn::GetAtt": [role, "Arn"] })) },
    });
    expect(() => setWith({ Resources: { Key: key(one, two) } }, { KEY: { Ref: "Key" } })).toThrow(
      "in a circle, which CloudFormation refuses: Part0Functions -> Key -> Part0Functions; remove one of",
    );
    const Kept = { ...key(two), DeletionPolicy: "Retain" } as const;
    expect(() => setWith({ Resources: { Kept } }, { KEY: { Ref: "Kept" } })).toThrow(
      "refuses: Part1Functions -> Kept -> Part1Functions;",
    );
    expect(() => setWith({ Resources: { Key: key(one) } }, { KEY: { Ref: "Key" } })).not.toThrow();
  });

  test("that refer to one that holds data stay in the parent with it, so that there is no circle", () => {
    const Key = {
      Type: "AWS::KMS::Key",
      DeletionPolicy: "Retain",
      Properties: { KeyPolicy: { "Fn::GetAtt": [one, "Arn"] } },
    } as const;
    const Policy = {
      Type: "AWS::IAM::Policy",
      Properties: { Roles: [{ Ref: one }], Resource: { "Fn::GetAtt": ["Key", "Arn"] } },
    };
    const { parent } = setWith({ Resources: { Key, Policy } });
    const role = { "Fn::GetAtt": ["Part0Functions", `Outputs.${one}`] };
    expect(parent.Resources["Policy"]?.Properties).toEqual({ ...Policy.Properties, Roles: [role] });
  });

  test("with a name that a nested template would have twice are refused", () => {
    const clash = {
      Type: "AWS::IAM::Policy",
      Properties: { Roles: [{ Ref: one }], Resource: { Ref: "Rows0TableArn" } },
    };
    const Rows0TableArn = { Type: "AWS::S3::Bucket", Properties: {} };
    expect(() => setWith({ Resources: { Clash: clash, Rows0TableArn } })).toThrow(
      /Rows0Table and Rows0TableArn|Rows0TableArn and Rows0Table /,
    );
    const Thing = { Type: "Custom::Thing", Properties: { Role: { Ref: one } } };
    const Asks = {
      Type: "AWS::SNS::Topic",
      Properties: {
        A: { "Fn::GetAtt": ["Thing", "Arn"] },
        B: { Ref: "ThingArn" },
        C: { Ref: two },
      },
    };
    expect(() => setWith({ Resources: { Thing, ThingArn: Thing, Asks } })).toThrow(
      "Thing and ThingArn come to the name ThingArn in a nested template; rename one of the two",
    );
    const Part0Functions = { Type: "AWS::S3::Bucket", Properties: {} };
    expect(() => setWith({ Resources: { Part0Functions } })).toThrow(
      "two names come to the logical ID Part0Functions",
    );
  });
});
