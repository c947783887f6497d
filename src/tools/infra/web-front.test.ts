// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import {
  arn,
  everyone,
  idsOf,
  properties,
  quiet,
  sheds,
  spades,
  statementsOf,
  sub,
  templateOf,
} from "../../../test/support/server-templates.ts";
import { defineFeature } from "../../app/features/feature.ts";
import type { Template } from "./template.ts";

const http = templateOf([spades, sheds]);
const web = templateOf([spades, sheds], { front: "web" });
const alone = templateOf([quiet], { front: "web" }, {});
const FunctionName = sub("${NamePrefix}-http");
const ifVersion = { "Fn::If": ["HasCodeVersion", { Ref: "CodeVersion" }, { Ref: "AWS::NoValue" }] };

describe("the web front", () => {
  test("has a Web Function, its revision and its endpoint, which name it without an ARN", () => {
    const { Environment } = properties(http, "HttpLambdaFunction") as {
      readonly Environment: { readonly Variables: object };
    };
    expect(properties(web, "HttpWebFunction")).toEqual({ FunctionName });
    expect(web.Resources["HttpWebFunctionRevision"]).toEqual({
      Type: "AWS::Lambda::WebFunctionRevision",
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      DependsOn: ["HttpWebFunction", "HttpLocalLogGroup"],
      Properties: {
        FunctionName,
        BuildConfig: {
          CodeConfig: {
            S3Object: {
              Bucket: { Ref: "CodeBucket" },
              Key: { Ref: "CodeKey" },
              VersionId: ifVersion,
            },
          },
          RuntimeConfig: { Runtime: "nodejs24.x" },
        },
        ServiceConfig: {
          ExecutionRoleArn: arn("HttpRole"),
          TimeoutSeconds: 30,
          EnvironmentVariables: Environment.Variables,
          TelemetryConfig: { LoggingConfig: { LogGroup: { Ref: "HttpLogGroup" } } },
        },
      },
    });
    expect(web.Resources["HttpWebFunctionEndpoint"]).toMatchObject({
      Type: "AWS::Lambda::WebFunctionEndpoint",
      DependsOn: "HttpWebFunction",
      Properties: {
        FunctionName,
        EndpointName: "default",
        EndpointType: "HomeRegion",
        AuthType: { Ref: "AuthType" },
      },
    });
    expect(web.Parameters["AuthType"]).toMatchObject({
      Default: "ApplicationManaged",
      AllowedValues: ["ApplicationManaged", "IamAuth"],
    });
  });

  test("gives the new revision all requests, or its percentage and the previous one the rest", () => {
    const { RevisionWeights } = properties(web, "HttpWebFunctionEndpoint");
    const RevisionId = { "Fn::GetAtt": ["HttpWebFunctionRevision", "RevisionId"] };
    expect(RevisionWeights).toEqual({
      "Fn::If": [
        "HasPreviousRevision",
        [
          { RevisionId, Weight: { Ref: "CanaryPercent" } },
          {
            RevisionId: { Ref: "PreviousRevisionId" },
            Weight: { "Fn::FindInMap": ["RevisionShares", { Ref: "CanaryPercent" }, "Previous"] },
          },
        ],
        [{ RevisionId, Weight: 100 }],
      ],
    });
    expect(web.Parameters["PreviousRevisionId"]?.Default).toBe("");
    // Safe: the front's own parameter.
    const { Default, AllowedValues } = web.Parameters["CanaryPercent"] as unknown as {
      readonly Default: number;
      readonly AllowedValues: readonly number[];
    };
    expect(AllowedValues).toContain(Default);
    const { RevisionShares } = web.Mappings as {
      readonly RevisionShares: Readonly<Record<string, { readonly Previous: string }>>;
    };
    expect(Object.keys(RevisionShares)).toEqual(AllowedValues.map(String));
    for (const [share, { Previous }] of Object.entries(RevisionShares)) {
      expect(Number(share) + Number(Previous)).toBe(100);
      expect(Number(share) > 0 && Number(Previous) > 0).toBe(true);
    }
  });

  test("has the roles of the http front, whose Web Function may also write to its second log group", () => {
    expect(idsOf(web, "AWS::IAM::Role")).toEqual(idsOf(http, "AWS::IAM::Role"));
    for (const role of idsOf(web, "AWS::IAM::Role")) {
      const [has, had] = [statementsOf(web, role), statementsOf(http, role)];
      const wanted = had.map((one) =>
        role === "HttpRole" && one.Sid === "Log"
          ? { ...one, Resource: [arn("HttpLogGroup"), arn("HttpLocalLogGroup")] }
          : one,
      );
      expect(has).toEqual(wanted);
      expect(properties(web, role)["AssumeRolePolicyDocument"]).toEqual(
        properties(http, role)["AssumeRolePolicyDocument"],
      );
    }
  });

  test("assumes the same tenant role if tenants are isolated", () => {
    const plots = defineFeature("plots", (r) => {
      r.table("plots", { partitionKey: "pk", tenant: true });
      r.query("plot.show", { route: "GET /plots/:id", ...everyone });
    });
    const [isolated, asFunction] = (["web", "http"] as const).map((front) =>
      templateOf([plots], { front }, { isolation: {} }),
    ) as [Template, Template]; // safe: two fronts
    expect(isolated.Resources["HttpTenantRole"]).toEqual(asFunction.Resources["HttpTenantRole"]);
    expect(properties(isolated, "HttpWebFunctionRevision")).toMatchObject({
      ServiceConfig: { EnvironmentVariables: { KEELSON_ISOLATION_ROLE: arn("HttpTenantRole") } },
    });
  });

  test("has the other functions as event functions of the same archive, in the same version", () => {
    const others = idsOf(http, "AWS::Lambda::Function").filter((id) => !id.startsWith("Http"));
    expect(idsOf(web, "AWS::Lambda::Function")).toEqual(others);
    for (const id of others) {
      const code = {
        S3Bucket: { Ref: "CodeBucket" },
        S3Key: { Ref: "CodeKey" },
        S3ObjectVersion: ifVersion,
      };
      expect(properties(web, id)).toEqual({ ...properties(http, id), Code: code });
    }
    const triggers = ["AWS::Lambda::EventSourceMapping", "AWS::Events::Rule"];
    for (const type of triggers) expect(idsOf(web, type)).toEqual(idsOf(http, type));
  });

  test("logs to the groups that Lambda names after a Web Function, which alarms read", () => {
    const group = "/aws/lambda/web/${NamePrefix}-http";
    expect(properties(web, "HttpLogGroup")["LogGroupName"]).toEqual(sub(group));
    expect(properties(web, "HttpLocalLogGroup")["LogGroupName"]).toEqual(sub(`${group}.local`));
    expect(properties(web, "HttpErrorsMetric")).toMatchObject({
      LogGroupName: { Ref: "HttpLogGroup" },
      FilterPattern:
        '{ (($.msg = "request.failed" && $.status >= 500) || ($.msg = "server.start_failed") || ($.type = "platform.initReport" && $.record.status = "failure")) && ($.source NOT EXISTS || $.source != "client") }',
      MetricTransformations: [{ MetricName: "http-errors", MetricValue: "1" }],
    });
    expect(properties(web, "HttpErrorsAlarm")).toMatchObject({
      Namespace: sub("${NamePrefix}"),
      MetricName: "http-errors",
    });
    expect(properties(web, "StepsUnknownInHttpMetric")["LogGroupName"]).toEqual({
      Ref: "HttpLogGroup",
    });
  });

  test("reads the log lines of a Web Function that measures, which reports nothing to CloudWatch", () => {
    const measured = templateOf([spades, sheds], { front: "web" }, { metrics: {} });
    expect(idsOf(measured, "AWS::Logs::MetricFilter")).toEqual([
      "HttpErrorsMetric",
      "StepsUnknownInHttpMetric",
    ]);
  });

  test("has only a Web Function for a server without events, jobs and schedules", () => {
    expect(idsOf(alone, "AWS::Lambda::Function")).toEqual([]);
    expect(Object.keys(alone.Parameters)).not.toContain("CodeEntry");
    expect(Object.keys(alone.Resources)).not.toContain("ThrottlesAlarm");
    expect(Object.keys(web.Resources)).toContain("ThrottlesAlarm");
  });

  test("has neither an API nor a policy of the code bucket", () => {
    const types = Object.values(web.Resources).map(({ Type }) => Type);
    expect(types.filter((type) => /ApiGateway|BucketPolicy|Lambda::Url/.test(type))).toEqual([]);
  });

  test("outputs where it answers, and the revision for a later canary", () => {
    const based = templateOf([quiet], { front: "web" }, { basePath: "/api" });
    expect(based.Outputs).toMatchObject({
      HttpUrl: { Value: sub("https://${HttpWebFunctionEndpoint.DomainName}/api") },
      HttpDomainName: { Value: { "Fn::GetAtt": ["HttpWebFunctionEndpoint", "DomainName"] } },
      HttpRevisionId: { Value: { "Fn::GetAtt": ["HttpWebFunctionRevision", "RevisionId"] } },
      HttpFunctionName: { Value: FunctionName },
    });
  });
});
