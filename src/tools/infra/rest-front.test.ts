// biome-ignore-all lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
import { describe, expect, test } from "vitest";
import {
  account,
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
const rest = templateOf([spades, sheds], { front: "rest" });
const streaming = templateOf([spades, sheds], { front: "rest", stream: true });
const each = templateOf([spades, sheds], { front: "rest", shape: "each" });

interface Method {
  readonly HttpMethod: string;
  readonly Integration: Readonly<Record<string, unknown>>;
}

const methodsOf = (template: Template) =>
  idsOf(template, "AWS::ApiGateway::Method").map(
    (id) => properties(template, id) as unknown as Method, // safe: the front's own
  );
const uri = (path: string) =>
  sub(`arn:\${AWS::Partition}:apigateway:\${AWS::Region}:lambda:${path}`);

describe("the rest front", () => {
  test("sends all paths and methods to one function", () => {
    expect(idsOf(rest, "AWS::ApiGateway::Resource")).toEqual(["RestApiResourceProxyVar"]);
    expect(properties(rest, "RestApiResourceProxyVar")).toEqual({
      RestApiId: { Ref: "RestApi" },
      ParentId: { "Fn::GetAtt": ["RestApi", "RootResourceId"] },
      PathPart: "{proxy+}",
    });
    expect(properties(rest, "RestApiMethodANY")).toEqual({
      RestApiId: { Ref: "RestApi" },
      ResourceId: { "Fn::GetAtt": ["RestApi", "RootResourceId"] },
      HttpMethod: "ANY",
      AuthorizationType: "NONE",
      Integration: {
        Type: "AWS_PROXY",
        IntegrationHttpMethod: "POST",
        Uri: uri("path/2015-03-31/functions/${HttpLambdaFunction.Arn}/invocations"),
      },
    });
    expect(properties(rest, "RestApiMethodProxyVarANY")).toMatchObject({
      ResourceId: { Ref: "RestApiResourceProxyVar" },
    });
    expect(properties(rest, "HttpLambdaPermissionRestApi")).toEqual({
      FunctionName: arn("HttpLambdaFunction"),
      Action: "lambda:InvokeFunction",
      Principal: "apigateway.amazonaws.com",
      SourceArn: sub(`arn:\${AWS::Partition}:execute-api:${account}:\${RestApi}/*`),
    });
  });

  test("streams every method if told, for up to 15 minutes", () => {
    for (const { Integration } of methodsOf(streaming))
      expect(Integration).toEqual({
        Type: "AWS_PROXY",
        IntegrationHttpMethod: "POST",
        Uri: uri(
          "path/2021-11-15/functions/${HttpLambdaFunction.Arn}/response-streaming-invocations",
        ),
        ResponseTransferMode: "STREAM",
        TimeoutInMillis: 900_000,
      });
    expect(properties(streaming, "HttpLambdaFunction")["Timeout"]).toEqual({
      Ref: "StreamTimeout",
    });
  });

  test("has a deployment of its own for each set of methods, made after them", () => {
    const [id = ""] = idsOf(rest, "AWS::ApiGateway::Deployment");
    expect(rest.Resources[id]).toEqual({
      Type: "AWS::ApiGateway::Deployment",
      DependsOn: idsOf(rest, "AWS::ApiGateway::Method"),
      Properties: { RestApiId: { Ref: "RestApi" } },
    });
    expect(properties(rest, "RestApiStage")["DeploymentId"]).toEqual({ Ref: id });
    const ids = [rest, streaming, each].flatMap((one) => idsOf(one, "AWS::ApiGateway::Deployment"));
    expect(new Set(ids).size).toBe(3);
  });

  test("cannot have a path with a tilde, except in one function for all routes", () => {
    const tilde = defineFeature(
      "tilde",
      (r) => void r.query("tilde.ask", { route: "GET /~ann/notes", ...everyone }),
    );
    const message =
      'a REST API refuses ~ in the path segment "~ann" of tildeTildeAsk; rename it, or use --shape one';
    expect(() => templateOf([tilde], { front: "rest", shape: "each" })).toThrow(message);
    expect(() =>
      templateOf([quiet], { front: "rest", shape: "each" }, { basePath: "/~ann" }),
    ).toThrow('"~ann" of quietQuietAsk');
    for (const options of [{ front: "rest" }, { shape: "each" }] as const)
      expect(() => templateOf([tilde], options)).not.toThrow();
  });

  test("is throttled, and logs requests only if told, since the account needs a role for it", () => {
    expect(properties(rest, "RestApiStage")).toMatchObject({
      StageName: "live",
      MethodSettings: [
        {
          HttpMethod: "*",
          ResourcePath: "/*",
          ThrottlingRateLimit: { Ref: "ThrottleRate" },
          ThrottlingBurstLimit: { Ref: "ThrottleBurst" },
        },
      ],
      AccessLogSetting: {
        "Fn::If": ["HasAccessLog", expect.anything(), { Ref: "AWS::NoValue" }],
      },
    });
    expect(rest.Parameters["AccessLog"]?.Default).toBe("false");
    expect(rest.Resources["RestApiLogGroup"]?.Condition).toBe("HasAccessLog");
    expect(JSON.stringify(properties(rest, "RestApiStage"))).not.toMatch(/header|querystring/i);
  });

  test("has the functions, roles and alarms of the http front", () => {
    for (const type of ["AWS::Lambda::Function", "AWS::IAM::Role", "AWS::CloudWatch::Alarm"])
      expect(idsOf(rest, type)).toEqual(idsOf(http, type));
    for (const id of idsOf(http, "AWS::Lambda::Function"))
      expect(properties(rest, id)).toEqual(properties(http, id));
    for (const role of idsOf(http, "AWS::IAM::Role"))
      expect(statementsOf(rest, role)).toEqual(statementsOf(http, role));
    expect(properties(rest, "HttpErrorsAlarm")).toMatchObject({
      Namespace: "AWS/ApiGateway",
      MetricName: "5XXError",
      Dimensions: [{ Name: "ApiName", Value: sub("${NamePrefix}") }],
    });
    expect(templateOf([quiet], { front: "rest" }, { basePath: "/api" }).Outputs).toMatchObject({
      RestApiUrl: {
        Value: sub("https://${RestApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}/live/api"),
      },
    });
  });
});

describe("the rest front in shape each", () => {
  /** Each path with its methods and their functions. */
  function pathsOf(template: Template) {
    const pathOf = (id: unknown): string => {
      const { Ref: resource }: { readonly Ref?: string } = Object(id);
      if (resource === undefined) return "";
      const { ParentId, PathPart } = properties(template, resource);
      return `${pathOf(ParentId)}/${PathPart}`;
    };
    const paths: Record<string, Record<string, unknown>> = {};
    for (const id of idsOf(template, "AWS::ApiGateway::Method")) {
      const { ResourceId, HttpMethod, Integration } = properties(template, id);
      const path = pathOf(ResourceId) || "/";
      const [, name] = /\{(\w+)LambdaFunction\.Arn\}/.exec(JSON.stringify(Integration)) ?? [];
      paths[path] = { ...paths[path], [String(HttpMethod)]: name };
    }
    return paths;
  }

  test("sends routes to their functions, and every other request to that for all routes", () => {
    expect(pathsOf(each)).toEqual({
      "/": { ANY: "Http" },
      "/spades": { ANY: "Http", GET: "SpadesSpadeList", HEAD: "SpadesSpadeList" },
      "/spades/{p2}": { ANY: "Http" },
      "/spades/{p2}/dig": { ANY: "Http", POST: "SpadesSpadeDig" },
      "/spades/{p2}/dig/{proxy+}": { ANY: "Http" },
      "/spades/{p2}/{proxy+}": { ANY: "Http" },
      "/{proxy+}": { ANY: "Http" },
    });
    expect(idsOf(each, "AWS::Lambda::Permission").filter((id) => id.endsWith("RestApi"))).toEqual([
      "SpadesSpadeListLambdaPermissionRestApi",
      "SpadesSpadeDigLambdaPermissionRestApi",
      "HttpLambdaPermissionRestApi",
    ]);
  });

  test("has one name for parameters beside each other, and the root's own routes", () => {
    const rakes = defineFeature("rakes", (r) => {
      r.query("rake.home", { route: "GET /", ...everyone });
      r.query("rake.show", { route: "GET /rakes/:id", ...everyone });
      r.write("rake.use", { route: "POST /rakes/:rakeId/use-up", ...everyone });
    });
    const template = templateOf([rakes], { front: "rest", shape: "each" });
    expect(pathsOf(template)).toEqual({
      "/": { ANY: "Http", GET: "RakesRakeHome", HEAD: "RakesRakeHome" },
      "/rakes": { ANY: "Http" },
      "/rakes/{p2}": { ANY: "Http", GET: "RakesRakeShow", HEAD: "RakesRakeShow" },
      "/rakes/{p2}/use-up": { ANY: "Http", POST: "RakesRakeUse" },
      "/rakes/{p2}/use-up/{proxy+}": { ANY: "Http" },
      "/rakes/{p2}/{proxy+}": { ANY: "Http" },
      "/{proxy+}": { ANY: "Http" },
    });
  });
});
